// What both widgets need of the document. Each page holds its own copy: nothing is fetched.
"use strict";

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
};

const makeSvg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
};

const labelled = (text, control) => make("label", { class: "widget-field" }, make("span", {}, text), control);

const choice = (name, options, value, onchange) => {
  const select = make("select", { name, onchange: () => onchange(select.value) });
  for (const [key, text] of options) select.append(make("option", { value: key }, text));
  select.value = value;
  return select;
};

// Every widget stands where its data does; the text for readers without scripts makes room for it.
const mountAll = (kind, mount) => {
  for (const root of document.querySelectorAll(`[data-widget="${kind}"]:not([data-mounted])`)) {
    root.dataset.mounted = "";
    const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    root.querySelector(".widget-without-script")?.remove();
    mount(root, data);
  }
};
