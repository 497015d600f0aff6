# SPDX-License-Identifier: MIT
"""examples/chat with SmolLM2's real weights: the words of the CPU, and its bad input."""

import os
import re
import subprocess
import sys

import pytest

CHAT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/chat/chat.py")
#: lib-torch.sh keeps the model's package apart, since it lacks what it requires.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.path.join(sys.prefix, "llm")}
QUESTIONS = ["What is the capital of France?", "And of Italy?", "Name three colours."]


def chat(*arguments, typed=""):
    return subprocess.run(
        [sys.executable, CHAT, "--tokens", "24", *arguments],
        env=ENVIRONMENT,
        input=typed,
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.fixture(scope="module")
def cpu():
    done = chat("--device", "cpu", "--dtype", "float32", *QUESTIONS)
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout and "Rome" in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_answers(cpu, dtype):
    """A conversation whose later questions build on the keys and values of the earlier ones."""
    done = chat("--dtype", dtype, *QUESTIONS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == cpu
    speeds = re.findall(r"\[(\d+) tokens on spyre: .* ([\d.]+) tokens/s\]", done.stderr)
    assert len(speeds) == len(QUESTIONS), done.stderr
    assert all(int(tokens) > 1 and float(speed) > 0 for tokens, speed in speeds)


def test_typed_questions():
    """/reset forgets the conversation; a question that does not fit is refused by its size."""
    done = chat("--context", "80", typed=f"{QUESTIONS[0]}\n/reset\n\n{'why ' * 80}\n/exit\nno\n")
    assert done.returncode == 0, done.stderr
    assert "Paris" in done.stdout and "tokens on spyre" in done.stderr
    assert re.search(r"cannot answer a question of \d+ tokens.* context of 80", done.stderr)
    assert done.stderr.count("tokens on spyre") == 1


@pytest.mark.parametrize(
    "arguments, text",
    [
        (["--context", "20"], "cannot answer with 24 tokens in a context of 20"),
        (["--model", "/nonexistent", "x"], "cannot load a model from /nonexistent"),
    ],
)
def test_bad_arguments(arguments, text):
    done = chat(*arguments)
    assert done.returncode != 0 and text in done.stderr and "Traceback" not in done.stderr
