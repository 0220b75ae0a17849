"""What an engine is about to say: choices, their pieces of text and how many tokens stand behind each, reasons to finish.

A plan knows nothing of any API; speak_*.py put it into an engine's words. Everything comes from one seeded generator.
"""
import json
from dataclasses import dataclass, field

WORDS = ["hold", " the", " line", " north", "wind", " backs", "é", "ü", " ⚓", "😀", "👩‍🚀", "日本語", "ي", " ", "\n", "\t", "\\", '"', "'", "{", "}", "[", "]", ":",
         "data: ", "\u2028", "\u2029", "\x85", "\x7f", "\x01", "</s>", "[DONE]", "<|im_end|>", "a", "0", "\r\n", "\ufeff", "ha", "/", "é",
         '"},"finish_reason":"stop"}]', '"usage":{"completion_tokens":99}', '\\"', "\\\\", "\\u0041", "{\"error\":1}", "event: error\n\n", "\n\ndata: [DONE]\n\n"]


@dataclass
class Step:
    choice: int
    kind: str               # text, reasoning, refusal, tool, held (tokens that show nothing)
    text: str = ""
    tokens: int = 1
    call: int = 0           # which tool call
    name: str = ""          # its name, on its first step


@dataclass
class Plan:
    n: int = 1
    steps: list = field(default_factory=list)
    reasons: list = field(default_factory=list)     # stop, length, tool, filter; one a choice
    eos: list = field(default_factory=list)         # tokens of the finish without text
    prompt: int = 0
    cached: int | None = None
    reasoning_told: bool = False
    hidden: int = 0                                 # reasoning tokens that no event shows

    def tokens(self, choice=None): return self.hidden * (choice in (None, 0)) + sum(s.tokens for s in self.steps if choice in (None, s.choice)) + \
        sum(e for c, e in enumerate(self.eos) if choice in (None, c))

    def reasoning(self): return self.hidden + sum(s.tokens for s in self.steps if s.kind == "reasoning")


def text_of(r):
    roll = r.random()
    if roll < 0.0004: return "".join(r.choices(WORDS, k=r.choice([20000, 90000])))      # an event beyond 64 KiB
    if roll < 0.004: return "x\ud800y"                      # a lone surrogate
    if roll < 0.008: return "a\u0000b"
    if roll < 0.02: return "".join(r.choices(WORDS, k=r.randint(200, 900)))
    return "".join(r.choices(WORDS, k=r.choice([1, 1, 1, 2, 3, 6])))


def arguments(r):
    """A tool call's arguments in pieces; one in eight is no JSON."""
    value = {"".join(r.choices("abcxyz", k=3)): r.choice([1, -2.5, None, True, "Brést ⚓", ["a", {"b": []}], 'q"\\'])for _ in range(r.randint(1, 3))}
    text = json.dumps(value, ensure_ascii=r.random() < 0.5)
    if r.random() < 0.12: text = text[:-r.randint(1, 3)]
    cuts = sorted(r.sample(range(1, len(text)), min(r.randint(0, 4), len(text) - 1)))
    return [text[a:b] for a, b in zip([0] + cuts, cuts + [len(text)])]


def tokens_of(r, bundle):
    return {"one": 1, "many": r.choice([1, 1, 2, 3, 4, 8]), "few": r.choice([0, 0, 1])}[bundle]


def choice_steps(r, c, bundle, allow):
    out = []
    if "reasoning" in allow and r.random() < 0.3: out += [Step(c, "reasoning", text_of(r), tokens_of(r, bundle)) for _ in range(r.randint(1, 5))]
    if "refusal" in allow and r.random() < 0.04: out += [Step(c, "refusal", text_of(r), tokens_of(r, bundle)) for _ in range(r.randint(1, 4))]
    elif r.random() < 0.95: out += [Step(c, "text", text_of(r), tokens_of(r, bundle)) for _ in range(r.choice([1, 2, 3, 5, 8, 13]))]
    if "tool" in allow and r.random() < 0.25:
        for call in range(r.choice([1, 1, 2])):
            name = r.choice(["look_up", "lookup_tide", "météo", "f"])
            pieces = arguments(r)
            out.append(Step(c, "tool", pieces.pop(0) if r.random() < 0.4 else "", max(1, tokens_of(r, bundle)), call, name))
            out += [Step(c, "tool", p, tokens_of(r, bundle), call) for p in pieces]
    if "held" in allow and r.random() < 0.25:
        for _ in range(r.randint(1, 3)): out.insert(r.randint(0, len(out)), Step(c, "held", "", r.choice([1, 1, 2])))
    return out


def make(r, allow=(), most=1):
    p = Plan(n=r.choice([1] * 5 + list(range(1, most + 1))))
    bundle = r.choice(["one"] * 4 + ["many"] * 4 + ["few"])
    parts = [choice_steps(r, c, bundle, allow) for c in range(p.n)]
    while any(parts):
        k = r.choice([i for i, x in enumerate(parts) if x])
        p.steps.append(parts[k].pop(0))
    for c in range(p.n):
        reason = "tool" if any(s.kind == "tool" and s.choice == c for s in p.steps) and r.random() < 0.8 else r.choice(["stop", "stop", "stop", "length", "filter"])
        p.reasons.append(reason)
        p.eos.append(1 if reason in ("stop", "tool") and r.random() < 0.6 else 0)
    p.prompt = r.choice([1, 7, 64, 1000, 131072])
    p.cached = r.choice([None, None, 0, r.randint(0, p.prompt)])
    p.reasoning_told = any(s.kind == "reasoning" for s in p.steps) and r.random() < 0.5
    if "hidden" in allow and not any(s.kind == "reasoning" for s in p.steps) and r.random() < 0.15: p.hidden, p.reasoning_told = r.choice([3, 64, 900]), True
    return p
