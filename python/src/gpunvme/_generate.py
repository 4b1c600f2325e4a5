"""``python -m gpunvme.transformers generate``: text of a model whose layers are streamed."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import transformers

from .errors import FormatError, GpuNvmeError, InvalidError
from .transformers import Streaming, configuration, load

_EXAMPLES = """examples:
  python -m gpunvme.transformers generate /models/llama --prompt "Once upon a time" --gpu-budget 8GiB
  python -m gpunvme.transformers generate /models/llama --prompt-file question.txt --tokens 200 --json
  python -m gpunvme.transformers generate model-Q6_K.gguf --prompt Hello --gpu-budget 4GiB
  python -m gpunvme.transformers generate 'vfio:0000:01:00.0#1:/models/llama' --config /models/llama --prompt Hello
"""


class _Watch(transformers.TextStreamer):
    """Prints the text as it comes, if somebody wants that, and notes when each token came."""

    def __init__(self, tokenizer: Any, quiet: bool) -> None:
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=True)
        self._quiet = quiet
        self.times: list[float] = []

    def put(self, value: torch.Tensor) -> None:
        # The first ones are the prompt's.
        self.times.append(time.monotonic())
        super().put(value)  # type: ignore[no-untyped-call]

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        if not self._quiet:
            print(text, flush=True, end="\n" if stream_end else "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gpunvme.transformers",
        description="Runs models of Hugging Face's transformers whose layers are streamed from storage.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    generate = commands.add_parser(
        "generate",
        help="text that follows a prompt",
        description="Prints the text that follows a prompt, as it comes, and says how fast that was.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    generate.add_argument("model", help="a folder with safetensors files, one such file, a GGUF file, or an address of them")
    prompt = generate.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt", help="the text to begin with")
    prompt.add_argument("--prompt-file", help="a file with that text; - for standard input")
    generate.add_argument("--tokens", type=_positive, default=64, help="to make at most; default 64")
    generate.add_argument("--gpu-budget", help="bytes of the device for the weights, such as 8GiB; 0: no layer stays")
    generate.add_argument("--dtype", default="auto", help="of the parameters, such as bfloat16; default: what the model says")
    generate.add_argument("--device", help="cuda or cpu; default: the GPU if there is one")
    generate.add_argument("--config", help="the folder with the model's configuration and tokenizer, if not the model's own")
    generate.add_argument("--slots", type=int, help="of the ring, 2 or more; default: 4, or fewer where that is faster")
    generate.add_argument("--sample", action="store_true", help="draw tokens; without it always the most likely one is taken")
    generate.add_argument("--json", action="store_true", help="one JSON object at the end, and nothing else")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"1 or more, not {text}")
    return number


def _prompt(arguments: argparse.Namespace) -> str:
    if arguments.prompt is not None:
        return str(arguments.prompt)
    if arguments.prompt_file == "-":
        return sys.stdin.read()
    with open(arguments.prompt_file, encoding="utf-8") as file:
        return file.read()


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    arguments = _parser().parse_args(words)
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    try:
        return _generate(arguments)
    except KeyboardInterrupt:
        print("gpunvme: interrupted", file=sys.stderr)
        return 130
    except (GpuNvmeError, ImportError, OSError, ValueError, KeyError) as e:
        print(f"gpunvme: {_line(e)}", file=sys.stderr)
        return 2 if isinstance(e, ValueError) and not isinstance(e, FormatError) else 1


def _line(e: BaseException) -> str:
    return " ".join(str(e).split())


@contextlib.contextmanager
def _tokenizing(source: str, what: str) -> Iterator[None]:
    """Tokenizers raise whatever they like. Those in Rust panic, which is no ``Exception``."""
    try:
        yield
    except (GpuNvmeError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as e:
        raise FormatError.of(f"{source}: {what}: {type(e).__name__}: {_line(e)}") from e


def _tokens(source: str, text: str) -> tuple[Any, Any]:
    """The tokenizer, and what it makes of the prompt."""
    with configuration(source) as (folder, gguf), _tokenizing(source, "transformers makes no tokenizer of it"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **gguf)
    with _tokenizing(source, "its tokenizer does not take the prompt"):
        prompt = tokenizer(text, return_tensors="pt")
    if prompt["input_ids"].shape[1] == 0:
        raise InvalidError.of("the prompt has no tokens: begin with some text")
    return tokenizer, prompt


def _check(source: str, prompt: Any, model: Any) -> None:
    """A GPU would say of a token that the model does not have no more than that something failed."""
    most, known = int(prompt["input_ids"].max()), model.get_input_embeddings().weight.shape[0]
    if most >= known:
        raise FormatError.of(
            f"{source}: its tokenizer makes token {most} of the prompt, and the model has {known}: they do not belong together"
        )


def _generate(arguments: argparse.Namespace) -> int:
    source = arguments.config or arguments.model
    tokenizer, prompt = _tokens(source, _prompt(arguments))
    began = time.monotonic()
    model = load(
        arguments.model,
        gpu_budget=arguments.gpu_budget,
        dtype=arguments.dtype,
        device=arguments.device,
        config=arguments.config,
        slots=arguments.slots,
        progress=lambda done, all: _progress(f"loading what stays: {done / 1e9:.2f} of {all / 1e9:.2f} GB"),
    )
    streaming: Streaming = model.gpunvme
    with streaming:
        loaded = time.monotonic()
        _progress("")
        _check(source, prompt, model)
        if not arguments.json:
            print(f"{streaming.explain()}\nloaded in {loaded - began:.2f} s", file=sys.stderr)
        prompt = prompt.to(streaming.device)
        watch = _Watch(tokenizer, arguments.json)
        made = model.generate(
            **prompt, max_new_tokens=arguments.tokens, do_sample=arguments.sample, streamer=watch
        )
        report = _report(streaming, watch.times, prompt["input_ids"].shape[1], made, tokenizer)
        report["load_seconds"] = loaded - began
    if arguments.json:
        print(json.dumps(report))
    else:
        print(
            f"{report['tokens']} tokens, {report['tokens_per_second']:.2f} tokens/s,"
            f" {report['bytes_per_second'] / 1e9:.2f} GB/s of layers, first token after {report['first_token_seconds']:.2f} s"
            + _floor(report)
            + _hits(report),
            file=sys.stderr,
        )
    return 0


def _hits(report: dict[str, Any]) -> str:
    experts = report["experts"]
    return "" if not experts else f"; {experts['hit_rate']:.0%} of the experts that were chosen had been read ahead"


def _floor(report: dict[str, Any]) -> str:
    if not report["share_of_floor"]:
        return ""
    return (
        f"; layers come at {report['read_rate'] / 1e9:.2f} GB/s: a token takes {report['floor_seconds']:.3f} s at least,"
        f" {report['share_of_floor']:.0%} of its time; {report['limit']} limits; read by {', '.join(report['paths'])}"
    )


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def _report(
    streaming: Streaming, times: Sequence[float], prompt: int, made: torch.Tensor, tokenizer: Any
) -> dict[str, Any]:
    """What happened. Rates are of the tokens after the first, which waits for the whole prompt."""
    count = len(times) - 1
    seconds = times[-1] - times[1] if count > 1 else 0.0
    plan = streaming.plan
    rate = (count - 1) / seconds if seconds > 0 else 0.0
    measured = streaming.layers.measured()
    guesses = streaming.layers.guesses
    return {
        "text": tokenizer.decode(made[0, prompt:], skip_special_tokens=True),
        "prompt_tokens": prompt,
        "tokens": count,
        "first_token_seconds": times[1] - times[0],
        "tokens_per_second": rate,
        "bytes_per_second": rate * streaming.layers.pass_bytes,
        "pass_bytes": streaming.layers.pass_bytes,
        "read_rate": measured and measured.read_rate,
        "floor_seconds": measured and measured.floor,
        "share_of_floor": measured and measured.floor * rate,
        "limit": measured and measured.limit,
        "paths": measured and measured.paths,
        "experts": guesses and guesses._asdict() | {"hit_rate": guesses.hit_rate},
        "device": str(streaming.device),
        "device_bytes": streaming.device_bytes,
        "layers": streaming.layers.count,
        "resident_layers": len(plan.resident),
        "slots": plan.slots,
    }
