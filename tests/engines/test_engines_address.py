from __future__ import annotations

import pytest

from speclab.engines import EngineOptions
from speclab.engines.address import identity, root
from speclab.errors import UserError
from speclab.run import plan


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("http://host:8000/v1", "http://host:8000"),
        ("HTTP://HOST:8000/v1/", "http://host:8000"),
        ("http://host", "http://host:80"),
        ("https://host/api/v1", "https://host:443/api"),
        ("http://me:secret@host:8000/v1", "http://host:8000"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
    ],
)
def test_one_server_has_one_name_without_credentials(given: str, named: str) -> None:
    assert identity(given) == named


def test_the_client_keeps_the_credentials() -> None:
    assert root("http://me:secret@host:8000/v1/") == "http://me:secret@host:8000"


@pytest.mark.parametrize(
    "given",
    ["http://[::1", "http://host:99999", "http://host:0", "host:8000", "http://", "", "ftp://host", "http://a b/v1",
     "http://host/v1?key=1", "http://host:port/v1"],
)  # fmt: skip
def test_what_is_no_address_is_a_users_mistake(given: str) -> None:
    for name in (identity, root):
        with pytest.raises(UserError, match=r"--base-url: found .* no address of a server; give one like http://127"):
            name(given)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(UserError) as mistake:
        identity("http://me:secret@host:99999/v1")
    assert "secret" not in str(mistake.value)


def test_another_server_is_another_cell_and_only_for_the_engine_endpoint() -> None:
    def cell(url: str, engine: str = "endpoint") -> str:
        options = EngineOptions(base_url=url, device="a-gpu")
        return plan.plan_arm("lab09", "baseline", engine=engine, options=options).cells[0].sha256  # type: ignore[arg-type]

    assert cell("http://a:8000/v1") != cell("http://b:8000/v1")
    assert cell("http://a:8000/v1") == cell("http://me:pw@a:8000")
    assert cell("http://a:8000/v1", "simulated") == cell("http://b:8000/v1", "simulated")
