"""Twenty questions that neither a lab nor the corpus asks: one of the three sets that a drafter is measured by."""

QUESTIONS = (
    "Why do leaves change their colour in autumn?",
    "I have a job offer in another city. How should I decide whether to move?",
    "Explain how a seismograph works and what its lines mean.",
    "What is the difference between weather and climate?",
    "Write a short speech for a colleague who retires after thirty years.",
    "How do I keep my house cool in summer without air conditioning?",
    "Who invented the telephone, and why is that disputed?",
    "Give me a simple weekly plan for learning to play chess.",
    "What happens to a letter between the letter box and my friend's door?",
    "Explain the idea of opportunity cost with an example from a student's life.",
    "Describe a market square in a small town on a rainy morning.",
    "How do scientists know how old the Earth is?",
    "My bicycle chain keeps falling off. What can I check before I take it to a shop?",
    "What are the steps of making cheese at home?",
    "Compare living in a village with living in a large city.",
    "How does a search engine find the right page among billions?",
    "Why do we have leap years, and what would happen without them?",
    "Write an email to my landlord about a broken heater, polite but firm.",
    "What should a first-aid kit for a family hike contain, and why?",
    "Tell me how the metric system came about.",
)
