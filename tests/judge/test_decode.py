"""Decoders of streams: the same words however the bytes are cut, and nothing but a typed fault from any bytes."""

from __future__ import annotations

import json
from codecs import BOM_UTF8
from itertools import pairwise

import pytest
from fake_server import event, ollama, openai
from hypothesis import given, settings
from hypothesis import strategies as st

from anima.judge.decode import MAX_BYTES, Delta, Fault, count
from anima.judge.ollama import _Lines
from anima.judge.openai import _Events

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("\u2028\x85\r\n😀é\x00"), max_size=30)
DECODERS = {"chat": _Lines, "generate": _Lines, "openai": _Events}


def stream(kind, content, thinking):
    return openai(content, thinking) if kind == "openai" else ollama(content, thinking, api=kind)


def read(decoder, data, cuts=()):
    deltas, edges = [], [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, stop in pairwise(edges):
        if not decoder.done:
            deltas += decoder.feed(data[start:stop])
    return deltas + list(decoder.end())


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(list(DECODERS)),
    TEXT,
    TEXT,
    st.lists(st.integers(0, 5000), max_size=12),
    st.booleans(),
    st.booleans(),
)
def test_words_do_not_depend_on_where_the_bytes_are_cut(kind, content, thinking, cuts, crlf, mark):
    data = stream(kind, content, thinking).body
    data = data.replace(b"\n", b"\r\n") if crlf else data
    data = BOM_UTF8 + data if mark else data
    decoder = DECODERS[kind]()
    deltas = read(decoder, data, cuts)
    assert decoder.complete
    assert (decoder.content, decoder.thinking) == (content, thinking)
    assert "".join(d.text for d in deltas if d.kind == "content") == content
    assert (decoder.prompt_tokens, decoder.model, decoder.finish) == (50, "m", "stop")


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(DECODERS)), TEXT, st.integers(0, 5000), st.binary(max_size=40))
def test_any_bytes_give_words_or_a_fault(kind, content, at, noise):
    data = stream(kind, content, "").body
    at %= len(data)
    for bad in (data[:at], data[:at] + noise + data[at:], data[:at] + noise, noise, noise + b"\n\n"):
        decoder = DECODERS[kind]()
        try:
            read(decoder, bad)
        except Fault as fault:
            assert fault.reason in ("garbage", "error_line", "cut")  # noqa: PT017
    decoder = DECODERS[kind]()
    read(decoder, data[:at])  # a beginning is never garbage
    assert content.startswith(decoder.content)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_character_split_between_two_tokens_is_joined(kind):
    whole = stream(kind, "x", "").body
    halves = [whole.replace(b'"x"', half) for half in (rb'"a\ud83d"', rb'"\ude00b"', rb'"c\udc80"')]
    tokens = [half.split(b"\n\n")[1] + b"\n\n" if kind == "openai" else half.split(b"\n")[0] + b"\n" for half in halves]
    decoder = DECODERS[kind]()
    assert list(decoder.feed(b"".join(tokens))) == [
        Delta("content", "a"),
        Delta("content", "😀b"),
        Delta("content", "c\ufffd"),
    ]


def test_what_server_sent_events_may_hold():
    said = json.dumps({"choices": [{"delta": {"content": "hi"}}]}, indent=1).encode()
    data = b"\n".join(b"data:" + part for part in said.split(b"\n"))
    parts = [
        b"\n: OPENROUTER PROCESSING\n\nid: 7\nretry: 10\nevent: message\n" + data + b"\n\n",
        event({"choices": []}),
        event({"timings": {}}),
        event({"choices": [{"delta": {"content": None, "role": "assistant"}}], "usage": None}),
        event({"choices": [{"delta": None, "finish_reason": "stop"}]}),
    ]
    decoder = _Events()
    assert list(decoder.feed(b"".join(parts))) == [Delta("content", "hi")]
    assert decoder.complete
    assert not decoder.done  # the count of tokens may follow
    assert list(decoder.feed(event(b"[DONE]") + b"\x00 anything")) == []
    assert decoder.done


@pytest.mark.parametrize(
    "data",
    [
        b'data: {"error": {"message": "out of memory"}}\n\n',
        b'error: {"message": "out of memory"}\n\n',
        b'event: error\ndata: {"message": "out of memory"}\n\n',
        b'{"error": {"message": "out of memory", "code": 500}}\n',
        b'data: {"error": "out of memory"}',
    ],
)
def test_errors_in_all_their_forms(data):
    with pytest.raises(Fault) as caught:
        read(_Events(), data)
    assert (caught.value.reason, caught.value.sample) == ("error_line", "out of memory")


def test_an_answer_without_end_is_refused():
    decoder, line = _Lines(), b'{"response": "' + b"x" * 10**6 + b'"}\n'
    with pytest.raises(Fault, match="it sends more than 67,108,864 bytes"):
        read(decoder, line * (MAX_BYTES // 10**6 + 1), range(0, MAX_BYTES, 10**6))


def test_counts_are_numbers_or_nothing():
    assert [count(value) for value in (0, 7, -1, 1.5, True, "7", None)] == [0, 7, None, None, None, None, None]
