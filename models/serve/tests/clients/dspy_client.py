"""Asks a running server with DSPy, whose adapter for JSON sends the schema of a signature's outputs.

    pip install dspy
    cargo run --release --bin burn-dfa-serve -- --model DIR &
    python models/serve/tests/clients/dspy_client.py http://127.0.0.1:8000

Every check prints a line; the first that fails ends the program with an error. The prompts are too long for
the embedded model.
"""

import sys
from typing import Literal

import dspy
from dspy import lm15
from openai import OpenAI
from pydantic import BaseModel, Field

URL = (sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8000") + "/v1"
MODEL = OpenAI(base_url=URL, api_key="none").models.list().data[0].id
SENTENCE = "Please send 12 brass lamps to Oscar Lund. He needs them tomorrow."

# DSPy sends schemas to models that are known to take them.
access = lm15.AccessPolicy("burn-dfa", base_url=URL)
server = lm15.ProviderDefinition.chat(access, compat=lm15.OpenAIChatCompat(), placeholder_key="none")
lm15.register_provider(server, supports=lm15.ModelSupport(response_schema=True))
dspy.configure(lm=dspy.LM(f"burn-dfa/{MODEL}", cache=False, max_tokens=300), adapter=dspy.JSONAdapter())


class Order(BaseModel):
    item: str = Field(max_length=40)
    quantity: int = Field(ge=1, le=1000)


class Read(dspy.Signature):
    """Reads an order."""

    text: str = dspy.InputField()
    order: Order = dspy.OutputField()
    urgency: Literal["low", "high"] = dspy.OutputField()
    express: bool = dspy.OutputField()


for module in (dspy.Predict(Read), dspy.ChainOfThought(Read)):
    answer = module(text=SENTENCE)
    assert isinstance(answer.order, Order) and answer.urgency in ("low", "high") and isinstance(answer.express, bool), answer
    print(type(module).__name__, answer)
