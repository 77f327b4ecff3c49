"""A model's chat template: Jinja source from the model's files, rendered in a sandbox.

The environment offers what templates are written against in practice (the conventions of `transformers`):
trimmed blocks, loop controls, `raise_exception`, `strftime_now`, a `tojson` that keeps non-ASCII text,
and `{% generation %}` blocks, which only mark text and change nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class ChatTemplateError(ValueError):
    """The template refused these messages, or can't be used at all; `str(error)` tells the client why."""


class GenerationBlock(jinja2.ext.Extension):
    """`{% generation %} ... {% endgeneration %}` renders its body."""

    tags = {"generation"}      # noqa: RUF012 - the base class reads it from the class

    def parse(self, parser: Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """One compiled template. Rendering is a function of the messages, and of the date if the template asks for it."""

    def __init__(self, source: str, variables: Mapping[str, str], now: Callable[[], datetime] = datetime.now) -> None:
        """`variables` are the names of special tokens that templates use, such as `bos_token`.

        Raises ChatTemplateError if the source is no valid template.
        """
        self.source = source
        self._variables = dict(variables)
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols])
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: now().strftime(form)
        try:
            self._template = environment.from_string(source)
        except (jinja2.TemplateError, RecursionError) as error:
            raise ChatTemplateError(f"the model's chat template can't be compiled: {error}") from None

    def render(self, messages: Sequence[Mapping[str, Any]], add_generation_prompt: bool = True) -> str:
        """The prompt's text. Raises ChatTemplateError with the template's own message if it refuses the messages."""
        present = [{key: value for key, value in message.items() if value is not None} for message in messages]
        try:
            return self._template.render(messages=present, tools=None, documents=None,
                                         add_generation_prompt=add_generation_prompt, **self._variables)
        except Exception as error:      # a template is foreign code: it may raise anything on odd messages
            raise ChatTemplateError(f"the model's chat template can't render these messages: {error}") from None


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: tuple[str, str] | None = None,
            sort_keys: bool = False) -> str:
    """Jinja's own filter escapes for HTML, which a prompt doesn't want."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
