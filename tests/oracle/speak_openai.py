"""Plans in the words of the OpenAI family: chat, completions, Responses, and the engines that speak like them."""
from plan import make

REASONS = {"stop": "stop", "length": "length", "tool": "tool_calls", "filter": "content_filter"}


class Said:
    """A response's events in order, before any framing: (event name, object) or (event name, bytes)."""

    def __init__(self, path, question, **more):
        self.path, self.question, self.items, self.headers, self.kind = path, question, [], {}, more.get("kind", "text/event-stream")
        self.error_at, self.done = None, more.get("done", False)
        self.broken_off = None

    def say(self, obj, name=""): self.items.append((name, obj))


def usage(r, p, v, n_out, choice=None):
    u = {"prompt_tokens": p.prompt, "completion_tokens": n_out, "total_tokens": p.prompt + n_out}
    if p.cached is not None and not v["zero_cached_left_out"] or p.cached:
        if v["engine"] == "deepseek": u["prompt_cache_hit_tokens"] = p.cached; u["prompt_cache_miss_tokens"] = p.prompt - p.cached
        elif v["engine"] == "xai": u["cached_tokens"] = p.cached
        else: u["prompt_tokens_details"] = {"cached_tokens": p.cached}
        if v["engine"] == "openai": u["prompt_tokens_details"]["audio_tokens"] = 0
    elif v["nulls"]: u["prompt_tokens_details"] = None
    if choice is not None: return u
    d = {}
    if p.reasoning_told:
        if v["engine"] == "sglang": u["reasoning_tokens"] = p.reasoning()
        else: d["reasoning_tokens"] = p.reasoning()
    if v["prediction"] or v["engine"] == "openai" or v["spec"] and v["engine"] == "sglang":
        d["accepted_prediction_tokens"], d["rejected_prediction_tokens"] = v["accepted"], v["rejected"]
    if d: u["completion_tokens_details"] = d
    if r.random() < 0.5: u = dict(r.sample(list(u.items()), len(u)))
    return u


def timings(p, v, n_out):
    t = {"cache_n": p.cached or 0, "prompt_n": p.prompt - (p.cached or 0), "prompt_ms": 80.25, "predicted_n": n_out, "predicted_ms": 9.5 * n_out, "predicted_per_second": 105.26315789473684}
    if v["spec"] and v["accepted"] + v["rejected"]: t["draft_n"], t["draft_n_accepted"] = v["accepted"] + v["rejected"], v["accepted"]
    return t


ENGINES = {  # engine: (reasoning key, usage modes, what else it may do)
    "openai": ("reasoning", ["none", "final"], ["logprobs", "obfuscation"]), "azure": ("reasoning", ["none", "final"], ["filter"]),
    "vllm": ("reasoning", ["none", "final", "running"], ["ids", "logprobs", "metrics", "finish_with_text", "empty_events"]),
    "vllm_old": ("reasoning_content", ["none", "final", "running"], ["finish_with_text"]),
    "sglang": ("reasoning_content", ["none", "final", "running"], ["matched_stop", "logprobs"]), "tgi": ("reasoning", ["final"], ["role_each"]),
    "llamacpp": ("reasoning_content", ["none", "final"], ["timings", "progress"]), "ollama": ("reasoning", ["none", "final"], ["role_each"]),
    "trtllm": ("reasoning_content", ["none", "final", "running"], ["iter", "logprobs", "empty_events", "finish_with_text"]), "deepseek": ("reasoning_content", ["on_finish"], []),
    "groq": ("reasoning", ["groq"], []), "openrouter": ("reasoning", ["final"], ["role_each"]), "xai": ("reasoning_content", ["running"], ["role_each"]),
    "lmdeploy": ("reasoning_content", ["none", "final"], ["output_ids", "role_each"]), "mixed": ("reasoning_content", ["some", "final", "on_finish", "running"], ["ids", "logprobs", "timings", "matched_stop", "empty_events", "finish_with_text"])}


def variant(r, engine):
    key, modes, more = ENGINES[engine]
    v = {"engine": engine, "reasoning_key": key, "usage": r.choice(modes), "nulls": r.random() < 0.5, "zero_cached_left_out": r.random() < 0.3, "prediction": engine == "openai" and r.random() < 0.15,
         "spec": r.random() < 0.3, "accepted": r.choice([0, 1, 31]), "rejected": r.choice([0, 2, 9])}
    for name in ("ids", "logprobs", "obfuscation", "filter", "metrics", "finish_with_text", "matched_stop", "role_each", "timings", "progress", "iter", "output_ids", "empty_events"):
        v[name] = name in more and r.random() < (1 if name in ("matched_stop", "role_each") else 0.45)
    if v["usage"] in ("running", "some"): v["timings"] = False      # nobody sends two running counts
    return v


def base(v, ident, chat):
    return {"id": "" if v["engine"] == "tgi" else ident, "object": "chat.completion.chunk" if chat else "text_completion", "created": 1790000000, "model": "acme/kestrel-8b", "choices": []}


def delta(v, s, legacy=False):
    if s.kind == "text": return {"content": s.text}
    if s.kind == "reasoning": return {v["reasoning_key"]: s.text, **({"content": None} if v["nulls"] else {})}
    if s.kind == "refusal": return {"refusal": s.text}
    if s.kind == "held": return {"content": ""}
    if legacy: return {"function_call": {**({"name": s.name} if s.name else {}), "arguments": s.text}}
    call = {"index": s.call, "function": {"arguments": s.text}}
    if s.name: call.update(id=f"call_{s.call}", type="function"); call["function"]["name"] = s.name
    return {"tool_calls": [call]}


def choice_of(r, v, chat, s, d, reason, ntok, ids_on):
    ch = {"index": s.choice, **({"delta": d} if chat else {"text": s.text})}
    if v["nulls"] or reason: ch["finish_reason"] = reason
    if v["logprobs"] and s.kind in ("text", "refusal") and ntok: ch["logprobs"] = logprobs(chat, s, ntok)
    elif v["nulls"]: ch["logprobs"] = None
    if ids_on: ch["output_ids" if v["output_ids"] else "token_ids"] = [r.randint(1, 99999) for _ in range(ntok)]
    elif v["ids"] and v["nulls"]: ch["token_ids"] = None
    if v["matched_stop"]: ch["matched_stop"] = 151645 if reason == "stop" else None
    if v["filter"]: ch["content_filter_results"] = {"hate": {"filtered": False, "severity": "safe"}}
    return ch


def logprobs(chat, s, n):
    if not chat: return {"tokens": ["t"] * n, "token_logprobs": [-0.5] * n, "top_logprobs": None, "text_offset": list(range(n))}
    rows = [{"token": "é\"", "logprob": -0.25, "bytes": [195, 169], "top_logprobs": []} for _ in range(n)]
    return {"content": rows, "refusal": None} if s.kind == "text" else {"content": None, "refusal": rows}


def chat_like(r, chat=True):
    engine = r.choice([e for e in ENGINES if chat or e not in ("azure", "deepseek", "groq", "openrouter", "xai")])
    v = variant(r, engine)
    p = make(r, ("reasoning", "tool", "refusal", "held", "hidden") if chat else ("held",), 3 if engine not in ("llamacpp", "tgi", "xai") else 1)
    if v["ids"] or v["output_ids"]:
        for s in p.steps: s.tokens = max(1, s.tokens)
    question = {"model": "asked", "stream": True, **({"messages": [{"role": "user", "content": "hi"}]} if chat else {"prompt": "hi"})}
    if p.n > 1: question["n"] = p.n
    if v["prediction"]: question["prediction"] = {"type": "content", "content": "def f"}
    if v["usage"] != "none" and r.random() < 0.7: question["stream_options"] = {"include_usage": True}
    said = Said(path_of(r, engine, chat), question, done=True)
    Speaker(r, v, p, said, chat).all()
    return said


def path_of(r, engine, chat):
    tail = "/chat/completions" if chat else "/completions"
    if engine == "azure": return f"/openai/deployments/orca{tail}?api-version=2026-01-01"
    return {"groq": "/openai/v1", "openrouter": "/api/v1"}.get(engine, r.choice(["/v1", "/v1", "/v1", "/engine/v1"])) + tail


class Speaker:
    def __init__(self, r, v, p, said, chat):
        self.r, self.v, self.p, self.said, self.chat = r, v, p, said, chat
        self.ident, self.count, self.started = f"chatcmpl-{r.randrange(10**8)}", [0] * p.n, set()
        self.ticking, self.extras = r.random() < 0.2, r.choice([0, 0, 0, 0.1])
        self.legacy = v["engine"] == "mixed" and p.n == 1 and all(s.call == 0 for s in p.steps) and r.random() < 0.5
        self.ids = v["ids"] or v["output_ids"]
        self.left_out = {i for i in range(len(p.steps)) if v["engine"] == "mixed" and r.random() < 0.15} if r.random() < 0.3 else set()
        self.last = {c: max((i for i, s in enumerate(p.steps) if s.choice == c and s.kind != "held"), default=None) for c in range(p.n)}

    def chunk(self, choices, **more):
        c = base(self.v, self.ident, self.chat)
        if self.ticking: c["created"] += len(self.said.items)
        if self.r.random() < self.extras: c[self.r.choice(["system_fingerprint", "service_tier", "nvext", "provider"])] = self.r.choice(["fp_1", None, {"timing": {"ttft_ms": 3.5}}, "default"])
        c["choices"] = choices
        if self.v["obfuscation"]: c["obfuscation"] = "q" * self.r.randint(1, 9)
        if self.v["nulls"] and self.v["usage"] != "none": c["usage"] = None
        c.update(more)
        self.said.say(c)
        return c

    def running(self, c, i=None):
        """What every chunk carries beside the text."""
        out = {}
        if self.v["usage"] == "running" and i not in self.left_out: out["usage"] = usage(self.r, self.p, self.v, self.count[c], c)
        if self.v["usage"] == "some" and self.r.random() < 0.4: out["usage"] = usage(self.r, self.p, self.v, self.count[c], c)
        if self.v["timings"] and self.p.n == 1: out["timings"] = timings(self.p, self.v, self.count[c])
        if self.v["iter"]: out["avg_decoded_tokens_per_iter"] = 1.25
        return out

    def opening(self):
        v = self.v
        if v["filter"]: self.said.say({"choices": [], "created": 0, "id": "", "model": "", "object": "", "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]})
        if v["progress"] and self.chat: self.chunk([{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": None}], prompt_progress={"total": 30, "cache": 0, "processed": 30, "time_ms": 3})

    def role(self, c):
        if not self.chat or c in self.started: return
        self.started.add(c)
        if self.v["role_each"]: return
        d = {"role": "assistant", "content": None if self.v["engine"] == "llamacpp" else ""}
        ch = {"index": c, "delta": d, "finish_reason": None}
        if self.v["matched_stop"]: ch["matched_stop"] = None
        self.chunk([ch], **(self.running(c) if self.v["usage"] == "running" else {}))

    def step(self, i, s):
        v = self.v
        if ("finished", s.choice) in self.started: return       # what was held back behind the last text never comes
        self.role(s.choice)
        self.count[s.choice] += s.tokens
        shown = s.kind != "held" or v["empty_events"] and (v["usage"] == "running" or self.ids) or v["output_ids"]
        if not shown: return
        d = delta(v, s, self.legacy)
        if v["role_each"]: d = {"role": "assistant", **d}
        last = v["finish_with_text"] and self.last[s.choice] == i and s.kind == "text"
        if last: self.count[s.choice] += self.p.eos[s.choice]
        ch = choice_of(self.r, v, self.chat, s, d, self.reason(s.choice) if last else None, s.tokens + (self.p.eos[s.choice] if last else 0), self.ids and i not in self.left_out)
        if last: self.started.add(("finished", s.choice))
        self.chunk([ch], **self.running(s.choice, i))

    def reason(self, c): return REASONS[self.p.reasons[c]]

    def finish(self, c):
        if ("finished", c) in self.started: return
        self.role(c)
        self.count[c] += self.p.eos[c]
        ch = {"index": c, **({"delta": {"content": ""} if self.v["role_each"] else {}} if self.chat else {"text": ""}), "finish_reason": self.reason(c)}
        if self.ids: ch["output_ids" if self.v["output_ids"] else "token_ids"] = [2] * self.p.eos[c]
        if self.v["matched_stop"]: ch["matched_stop"] = None
        more = self.running(c)
        if self.v["usage"] == "on_finish" and c == self.p.n - 1: more["usage"] = usage(self.r, self.p, self.v, self.total())
        if self.v["usage"] == "groq" and c == self.p.n - 1: more["x_groq"] = {"id": "req_1", "usage": {"queue_time": 0.09, **usage(self.r, self.p, self.v, self.total())}}
        if self.v["engine"] == "llamacpp" and self.v["usage"] == "none": more["timings"] = timings(self.p, self.v, self.total())
        self.chunk([ch], **more)

    def total(self): return self.p.tokens() + (self.v["rejected"] if self.v["prediction"] else 0)

    def closing(self):
        more = {}
        if self.v["metrics"]: more["metrics"] = {"queue_time_ms": 1.5, "speculative_decoding": {"num_spec_steps": 4, "num_draft_tokens": 12, "num_accepted_draft_tokens": 6, "mean_acceptance_length": 2.5}}
        if self.v["timings"] and self.p.n == 1: more["timings"] = timings(self.p, self.v, self.total())
        if self.v["usage"] in ("final", "running") and not (self.v["usage"] == "running" and self.r.random() < 0.2): self.chunk([], usage=usage(self.r, self.p, self.v, self.total()), **more)

    def all(self):
        self.p.hidden = 0 if self.v["usage"] in ("running", "some") or self.ids or self.v["timings"] else self.p.hidden
        self.p.reasoning_told = self.p.reasoning_told and (self.p.hidden > 0 or any(s.kind == "reasoning" for s in self.p.steps))
        self.opening()
        for i, s in enumerate(self.p.steps): self.step(i, s)
        if self.v["filter"] and self.r.random() < 0.3: self.chunk([{"index": 0, "finish_reason": None, "content_filter_results": {}, "content_filter_offsets": {"check_offset": 0}}])
        for c in self.r.sample(range(self.p.n), self.p.n) if self.v["usage"] not in ("on_finish", "groq") else range(self.p.n): self.finish(c)
        self.closing()


def completions_zero(r):
    """Ollama's /v1/completions: a zero usage on every chunk, the true one at the end."""
    p = make(r)
    said = Said("/v1/completions", {"model": "asked", "stream": True, "prompt": "hi", "stream_options": {"include_usage": True}}, done=True)
    zero, b = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, {"id": "cmpl-1", "object": "text_completion", "created": 1790000500, "model": "wren:3b", "system_fingerprint": "fp_ollama"}
    for s in p.steps: said.say({**b, "choices": [{"text": s.text, "index": 0, "finish_reason": None}], "usage": zero})
    said.say({**b, "choices": [{"text": "", "index": 0, "finish_reason": REASONS[p.reasons[0]]}], "usage": zero})
    said.say({**b, "choices": [], "usage": {"prompt_tokens": p.prompt, "completion_tokens": p.tokens(), "total_tokens": p.prompt + p.tokens()}})
    return said


def responses(r):
    p = make(r, ("reasoning", "tool", "refusal", "hidden"))
    said, seq, numbered = Said("/v1/responses", {"model": "asked", "stream": True, "input": "hi"}), 0, r.random() < 0.8
    summary, lps = any(s.kind == "reasoning" for s in p.steps) and r.random() < 0.5, r.random() < 0.3
    head = {"id": f"resp_{r.randrange(10**6)}", "object": "response", "model": "orca-2026", "error": None, "incomplete_details": None, "output": [], "usage": None}
    if summary: p.reasoning_told = True

    def say(kind, **more):
        nonlocal seq
        said.say({"type": kind, **({"sequence_number": seq} if numbered else {}), **more}, kind if numbered or r.random() < 0.9 else ""); seq += 1
    say("response.created", response={**head, "status": "in_progress"}); say("response.in_progress", response={**head, "status": "in_progress"})
    for s in p.steps: responses_step(r, say, s, summary, lps)
    text = "".join(s.text for s in p.steps if s.kind == "text")
    if text: say("response.output_text.done", output_index=1, content_index=0, text=text)
    reason = p.reasons[0]
    status = "incomplete" if reason in ("length", "filter") else "completed"
    details = {"reason": "max_output_tokens" if reason == "length" else "content_filter"} if status == "incomplete" else None
    u = {"input_tokens": p.prompt, "input_tokens_details": {"cached_tokens": p.cached or 0}, "output_tokens": p.tokens(), "output_tokens_details": {"reasoning_tokens": p.reasoning() if p.reasoning_told else 0}, "total_tokens": p.prompt + p.tokens()}
    say(f"response.{status}", response={**head, "status": status, "incomplete_details": details, "usage": u})
    return said


def responses_step(r, say, s, summary, lps):
    lp = {"logprobs": [{"token": "t", "logprob": -1, "top_logprobs": []}] * s.tokens if lps else []} if s.kind == "text" else {}
    if s.kind == "tool":
        at = {"item_id": f"fc_{s.call}", "output_index": 2 + s.call}
        if s.name: say("response.output_item.added", output_index=at["output_index"], item={"id": at["item_id"], "type": "function_call", "status": "in_progress", "name": s.name, "call_id": "c1", "arguments": ""})
        if s.text: say("response.function_call_arguments.delta", **at, delta=s.text)
        return
    kind = {"text": "output_text", "refusal": "refusal", "reasoning": "reasoning_summary_text" if summary else "reasoning_text"}[s.kind]
    say(f"response.{kind}.delta", item_id="m1", output_index=int(s.kind != "reasoning"), **({"summary_index": 0} if summary and s.kind == "reasoning" else {"content_index": 0}), delta=s.text, **lp)
    if r.random() < 0.1 and s.kind == "text": say("response.output_text.delta", item_id="m1", output_index=1, content_index=0, delta="", logprobs=[])
