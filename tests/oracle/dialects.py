"""What one event or one whole JSON answer says, for each API: tokens' places, totals, ends and errors.

Each reader is a function (take, event name, object) that tells a Take what it saw. Written from the documents alone.
"""
from dataclasses import dataclass, field

from framing import utf8_len

LENGTH_REASONS = {"length", "max_tokens", "max_output_tokens", "limit", "MAX_TOKENS"}
FAILED_REASONS = {"error", "abort", "failed"}


@dataclass
class Tok:
    event: int
    choice: int
    bearing: bool = False       # answer text, reasoning, refusal, tool data
    summary: bool = False       # a reasoning summary and nothing else
    answer: bool = False        # answer text or a tool call
    nbytes: int = 0             # UTF-8 bytes of what it bears
    ids: int | None = None
    logprobs: int | None = None
    running: dict = field(default_factory=dict)     # name of a cumulative field: its value
    contract: bool = False      # one token by the API's contract


class Take:
    """Collects what the events of one response say."""

    def __init__(self, ask, streamed):
        self.ask, self.streamed, self.event = ask, streamed, 0
        self.toks, self.finishes, self.facts, self.tools, self.seen = [], {}, {}, {}, {}
        self.done = self.typed_end = self.error = False
        self.typed_end_event, self.bad, self.totals = None, 0, []
        self.cut = False
        self.text = self.reasoning_text = 0
        self.choices = set()
        self.doubts = set()         # facts that the documents leave open for this very stream

    def keep(self, name, value):
        if isinstance(value, int) and not isinstance(value, bool): self.facts[name] = value

    def total(self, value, choiceless=True):
        """A total of output tokens. A zero after something greater is a placeholder."""
        if not isinstance(value, int) or isinstance(value, bool): return
        self.totals.append((self.event, value, choiceless))

    def tok(self, choice=0):
        if self.toks and self.toks[-1].event == self.event and self.toks[-1].choice == choice: return self.toks[-1]
        self.choices.add(choice)
        self.toks.append(Tok(self.event, choice))
        return self.toks[-1]

    def say(self, text, kind="text", choice=0):
        """Text of an event. kind: text, reasoning, refusal, tool, summary."""
        t = self.tok(choice)
        if not isinstance(text, str) or not text: return
        n = utf8_len(text)
        if kind in ("text", "refusal"): self.text += n        # a refusal is the answer that is shown
        if kind in ("reasoning", "thinking"): self.reasoning_text += n
        if kind == "summary": t.summary = True; return
        t.bearing = True; t.nbytes += n
        if kind not in ("reasoning", "thinking"): t.answer = True

    def tool(self, key, name=None, args=None, choice=0, whole=False):
        """A tool call's name or a piece of its arguments; key tells the calls of a response apart."""
        call = self.tools.setdefault(key, {"name": None, "args": "", "whole": whole})
        if isinstance(name, str) and name and call["name"] is None:
            call["name"] = name
            self.say(name, "tool", choice)
        if isinstance(args, str) and args:
            call["args"] += args
            self.say(args, "tool", choice)

    def named(self, ident):
        if ident: self.seen.setdefault("response_id", ident)

    def finish(self, reason, choice=0):
        if not isinstance(reason, str) or not reason: return
        if choice not in self.finishes: self.finishes[choice] = [reason, self.event]
        self.finishes[choice][0] = reason
        if reason in FAILED_REASONS: self.error = True

    def end(self):
        self.typed_end, self.typed_end_event = True, self.event


def get(obj, *path):
    """obj[a][b]…, or None."""
    for p in path:
        if isinstance(p, int): obj = obj[p] if isinstance(obj, list) and p < len(obj) else None
        else: obj = obj.get(p) if isinstance(obj, dict) else None
    return obj


def first(*values): return next((v for v in values if v is not None), None)


# -- the OpenAI family

def openai_usage(t, u, root):
    t.keep("prompt_tokens", get(u, "prompt_tokens"))
    t.keep("cached_tokens", first(get(u, "prompt_tokens_details", "cached_tokens"), get(u, "prompt_cache_hit_tokens"), get(u, "cached_tokens")))
    t.keep("cache_write_tokens", first(get(u, "prompt_tokens_details", "cache_write_tokens"), get(u, "created_cache_tokens"), get(u, "prompt_tokens_details", "created_cache_tokens")))
    details = get(u, "completion_tokens_details")
    t.keep("reasoning_tokens", first(get(details, "reasoning_tokens"), get(u, "reasoning_tokens")))
    t.keep("predicted_accepted", get(details, "accepted_prediction_tokens"))
    t.keep("predicted_rejected", get(details, "rejected_prediction_tokens"))
    t.total(get(u, "completion_tokens"), not get(root, "choices"))


def openai_extras(t, root):
    timings, m = get(root, "timings"), get(root, "metrics")
    if timings:
        t.keep("draft_tokens", get(timings, "draft_n")); t.keep("accepted_tokens", get(timings, "draft_n_accepted"))
        t.keep("cached_tokens", get(timings, "cache_n"))
        if get(timings, "prompt_n") is not None: t.keep("prompt_tokens", timings["prompt_n"] + (get(timings, "cache_n") or 0))
        t.total(get(timings, "predicted_n"))
    spec = get(m, "speculative_decoding")
    t.keep("draft_tokens", get(spec, "num_draft_tokens")); t.keep("accepted_tokens", get(spec, "num_accepted_draft_tokens"))
    t.keep("spec_steps", get(spec, "num_spec_steps"))
    t.keep("cached_tokens", get(m, "prefix_cache", "num_cached_tokens"))
    usage = first(get(root, "usage"), get(root, "x_groq", "usage"))
    if usage: openai_usage(t, usage, root)
    return get(usage, "completion_tokens"), get(timings, "predicted_n")


def openai_tool_calls(t, c, calls):
    for n, call in enumerate(calls or []):
        key = (c, first(get(call, "index"), n))
        t.tool(key, get(call, "function", "name"), get(call, "function", "arguments"), c)


def openai_message(t, c, d):
    t.say(get(d, "content"), "text", c)
    t.say(first(get(d, "reasoning_content"), get(d, "reasoning")), "reasoning", c)
    t.say(get(d, "refusal"), "refusal", c)
    openai_tool_calls(t, c, get(d, "tool_calls"))
    if get(d, "function_call"): t.tool((c, "legacy"), get(d, "function_call", "name"), get(d, "function_call", "arguments"), c)


def openai_choice(t, choice, n, used, timed):
    c = first(get(choice, "index"), n)
    tok = t.tok(c)
    openai_message(t, c, first(get(choice, "delta"), get(choice, "message")))
    t.say(get(choice, "text"), "text", c)
    ids = first(get(choice, "token_ids"), get(choice, "output_ids"))
    if isinstance(ids, list): tok.ids = len(ids)
    lists = [get(choice, "logprobs", k) for k in ("content", "refusal", "tokens")]
    lists = [x for x in lists if isinstance(x, list)]
    if lists: tok.logprobs = sum(len(x) for x in lists)
    if used is not None: tok.running["usage"] = used
    if timed is not None: tok.running["timings"] = timed
    if "matched_stop" in choice: t.seen["matched_stop"] = True
    t.finish(get(choice, "finish_reason"), c)


def openai(t, name, root):
    used, timed = openai_extras(t, root)
    for n, choice in enumerate(get(root, "choices") or []): openai_choice(t, choice, n, used, timed)
    t.named(get(root, "id"))


# -- Responses

def responses_usage(t, r):
    u = get(r, "usage")
    t.keep("prompt_tokens", get(u, "input_tokens")); t.keep("cached_tokens", get(u, "input_tokens_details", "cached_tokens"))
    t.keep("reasoning_tokens", get(u, "output_tokens_details", "reasoning_tokens"))
    t.total(get(u, "output_tokens"))


def responses_end(t, r):
    t.end()
    responses_usage(t, r)
    t.finish(first(get(r, "incomplete_details", "reason"), get(r, "status")))


def responses_output(t, r):
    for n, item in enumerate(get(r, "output") or []):
        for part in get(item, "content") or []:
            t.say(get(part, "text"), "reasoning" if get(part, "type") == "reasoning_text" else "text")
        if get(item, "type") == "function_call": t.tool(n, get(item, "name"), get(item, "arguments"))


def responses(t, name, root):
    kind = get(root, "type") or ""
    if get(root, "object") == "response": responses_output(t, root); responses_end(t, root); t.named(get(root, "id")); return
    if kind in ("response.completed", "response.incomplete", "response.failed"):
        if get(root, "response", "error"): t.error = True
        responses_end(t, root["response"])
    elif kind == "error": t.error = True
    elif kind.endswith(".delta"): responses_delta(t, kind, root)
    elif kind == "response.output_item.added" and get(root, "item", "type") in ("function_call", "custom_tool_call", "mcp_call"):
        t.tool(root.get("output_index"), get(root, "item", "name"))
    t.named(get(root, "response", "id"))


def responses_delta(t, kind, root):
    what = kind.removeprefix("response.").removesuffix(".delta")
    if what == "reasoning_summary_text": t.say(get(root, "delta"), "summary"); return
    if what == "function_call_arguments": t.tool(root.get("output_index"), None, get(root, "delta"))
    else: t.say(get(root, "delta"), {"output_text": "text", "reasoning_text": "reasoning"}.get(what, what))
    lp = get(root, "logprobs")
    if isinstance(lp, list) and lp: t.tok().logprobs = len(lp)


# -- Anthropic

def anthropic_usage(t, u):
    for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"):
        if isinstance(get(u, name), int): t.seen[name] = u[name]
    parts = [t.seen.get(n) for n in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")]
    if parts[0] is not None: t.keep("prompt_tokens", sum(p or 0 for p in parts))
    t.keep("cache_write_tokens", parts[1]); t.keep("cached_tokens", parts[2])


def anthropic(t, name, root):
    kind = get(root, "type")
    if kind == "message": anthropic_whole(t, root)
    elif kind == "message_start":
        anthropic_usage(t, get(root, "message", "usage")); t.named(get(root, "message", "id"))
    elif kind == "content_block_start":
        b = get(root, "content_block")
        if (get(b, "type") or "").endswith("tool_use"): t.tool(root.get("index"), get(b, "name"))
    elif kind == "content_block_delta":
        d = get(root, "delta")
        t.say(get(d, "text"), "text"); t.say(get(d, "thinking"), "thinking")
        t.tool(root.get("index"), None, d["partial_json"]) if "partial_json" in d else None
    elif kind == "message_delta":
        anthropic_usage(t, get(root, "usage")); t.total(get(root, "usage", "output_tokens"))
        t.finish(get(root, "delta", "stop_reason"))
    elif kind == "message_stop": t.end()


def anthropic_whole(t, root):
    for n, b in enumerate(get(root, "content") or []):
        t.say(get(b, "text"), "text"); t.say(get(b, "thinking"), "thinking")
        if (get(b, "type") or "").endswith("tool_use"): t.tool(n, get(b, "name"), whole=True)
    anthropic_usage(t, get(root, "usage")); t.total(get(root, "usage", "output_tokens"))
    t.finish(get(root, "stop_reason")); t.named(get(root, "id"))


# -- Gemini, Bedrock

def gemini(t, name, root):
    u = get(root, "usageMetadata")
    t.keep("prompt_tokens", get(u, "promptTokenCount")); t.keep("cached_tokens", get(u, "cachedContentTokenCount"))
    t.keep("reasoning_tokens", get(u, "thoughtsTokenCount"))
    if get(u, "candidatesTokenCount") is not None or get(u, "thoughtsTokenCount") is not None:
        t.total((get(u, "candidatesTokenCount") or 0) + (t.facts.get("reasoning_tokens") or 0))
    for n, cand in enumerate(get(root, "candidates") or []):
        c = first(get(cand, "index"), n)
        tok = t.tok(c)
        for m, part in enumerate(get(cand, "content", "parts") or []):
            t.say(get(part, "text"), "summary" if get(part, "thought") else "text", c)
            call = get(part, "functionCall")
            if call:
                t.tool((t.event, c, m), get(call, "name"), choice=c, whole=True)
                t.doubts.add("tool_bytes")      # the arguments are an object: how many bytes its text would have is open
        if get(u, "candidatesTokenCount") is not None: tok.running["usage"] = u["candidatesTokenCount"]
        t.finish(get(cand, "finishReason"), c)
    t.named(get(root, "responseId"))


def bedrock(t, name, root):
    if name == "contentBlockStart": t.tool(get(root, "contentBlockIndex"), get(root, "start", "toolUse", "name")) if get(root, "start", "toolUse") else None
    elif name == "contentBlockDelta":
        d = get(root, "delta")
        t.say(get(d, "text"), "text"); t.say(get(d, "reasoningContent", "text"), "thinking")
        if get(d, "toolUse"): t.tool(get(root, "contentBlockIndex"), None, get(d, "toolUse", "input"))
    elif name == "messageStop": t.finish(get(root, "stopReason"))
    elif name == "metadata":
        u = get(root, "usage")
        t.end()
        parts = [get(u, n) for n in ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens")]
        if parts[0] is not None: t.keep("prompt_tokens", sum(p or 0 for p in parts))
        t.keep("cached_tokens", parts[1]); t.keep("cache_write_tokens", parts[2]); t.total(get(u, "outputTokens"))


# -- native routes

def summed(t):
    """The total of routes whose counts are kept choice by choice."""
    counts = [v for k, v in t.seen.items() if isinstance(k, tuple) and k[0] == "count"]
    if counts: t.total(sum(counts))


def meta_generate(t, name, root):
    """SGLang's and LMDeploy's /generate: the count is cumulative in every mode, the text may be."""
    if isinstance(root, list) or get(root, "index"): t.doubts |= {"prompt_tokens", "cached_tokens"}      # of several prompts, or one prompt told several times?
    for n, one in enumerate(root if isinstance(root, list) else [root]):
        m, c = get(one, "meta_info"), first(get(one, "index"), n)
        if m is None: continue
        tok = t.tok(c)
        text, ids, count = get(one, "text") or "", get(one, "output_ids"), get(m, "completion_tokens")
        t.seen.setdefault(("texts", c), []).append((t.event, text, len(ids) if isinstance(ids, list) else None, count))
        if text: tok.bearing = tok.answer = True; tok.nbytes = utf8_len(text)
        if count is not None: tok.running["meta"] = count; t.seen[("count", c)] = count
        t.keep("prompt_tokens", get(m, "prompt_tokens")); t.keep("cached_tokens", get(m, "cached_tokens")); t.keep("reasoning_tokens", get(m, "reasoning_tokens"))
        t.keep("spec_steps", get(m, "spec_verify_ct"))
        t.keep("accepted_tokens", first(get(m, "spec_num_correct_drafts"), get(m, "spec_accept_token_num")))
        t.keep("draft_tokens", first(get(m, "spec_num_proposed_drafts"), get(m, "spec_draft_token_num")))
        reason = get(m, "finish_reason")
        t.finish(get(reason, "type") if isinstance(reason, dict) else reason, c)
        t.named(get(m, "id"))
    summed(t)


def tgi(t, name, root):
    for one in root if isinstance(root, list) else [root]:
        token, details = get(one, "token"), get(one, "details")
        if token:
            tok = t.tok()
            tok.contract = True
            if not get(token, "special"): t.say(get(token, "text"), "text")
        elif not t.streamed: t.say(get(one, "generated_text"), "text")
        t.total(get(details, "generated_tokens")); t.keep("prompt_tokens", get(details, "input_length"))
        t.finish(get(details, "finish_reason"))
        if isinstance(get(one, "generated_text"), str): t.end()


def triton(t, name, root): t.say(get(root, "text_output"), "text")


def ollama(t, name, root):
    m = get(root, "message")
    t.say(first(get(m, "content"), get(root, "response")), "text"); t.say(first(get(m, "thinking"), get(root, "thinking")), "reasoning")
    for n, call in enumerate(get(m, "tool_calls") or []):
        t.tool((t.event, n), get(call, "function", "name"), whole=True); t.doubts.add("tool_bytes")
    if get(root, "done") is True:
        t.end()
        t.total(get(root, "eval_count")); t.keep("prompt_tokens", get(root, "prompt_eval_count")); t.finish(get(root, "done_reason"))


def llamacpp(t, name, root):
    for n, one in enumerate(root if isinstance(root, list) else [root]):
        c = first(get(one, "index"), n)
        tok = t.tok(c)
        t.say(get(one, "content"), "text", c)
        if get(one, "tokens_predicted") is not None: tok.running["count"] = one["tokens_predicted"]; t.seen[("count", c)] = one["tokens_predicted"]
        t.keep("prompt_tokens", get(one, "tokens_evaluated"))
        timings = get(one, "timings")
        t.keep("cached_tokens", get(timings, "cache_n"))
        for fact, name in (("draft_tokens", "draft_n"), ("accepted_tokens", "draft_n_accepted")):      # each choice is a task of its own
            if get(timings, name) is not None: t.seen[(fact, c)] = timings[name]; t.keep(fact, sum(v for k, v in t.seen.items() if isinstance(k, tuple) and k[0] == fact))
        if get(one, "stop") is True: t.end(); t.finish(get(one, "stop_type"), c)
    summed(t)


def lmstudio(t, name, root):
    kind = get(root, "type") or name
    if kind == "message.delta": t.say(get(root, "content"), "text")
    elif kind == "reasoning.delta": t.say(get(root, "content"), "reasoning")
    elif kind == "error": t.error = True
    elif kind == "chat.end":
        s = get(root, "result", "stats")
        t.end()
        t.keep("prompt_tokens", get(s, "input_tokens")); t.keep("reasoning_tokens", get(s, "reasoning_output_tokens")); t.total(get(s, "total_output_tokens"))


READERS = {"openai-chat": openai, "openai-completions": openai, "openai-responses": responses, "anthropic-messages": anthropic,
           "gemini-generate": gemini, "bedrock-converse": bedrock, "sglang-generate": meta_generate, "lmdeploy-generate": meta_generate,
           "tgi-generate": tgi, "triton-generate": triton, "ollama-chat": ollama, "ollama-generate": ollama,
           "llamacpp-completion": llamacpp, "lmstudio-chat": lmstudio}


def api_of(path, body, root, framing):
    """The API by the answer's shape, else by path and question."""
    path = path.partition("?")[0]
    one = get(root, 0) if isinstance(root, list) else root
    kind = get(one, "type") or ""
    keys = set(one) if isinstance(one, dict) else set()
    if framing == "aws": return "bedrock-converse"
    if kind.startswith("response.") or get(one, "object") == "response": return "openai-responses"
    if kind in ("message_start", "message", "content_block_start", "content_block_delta", "message_delta", "message_stop", "ping"): return "anthropic-messages"
    if "." in kind and kind.split(".")[0] in ("chat", "model_load", "prompt_processing", "message", "reasoning"): return "lmstudio-chat"
    if "candidates" in keys or "usageMetadata" in keys or "promptFeedback" in keys: return "gemini-generate"
    if "meta_info" in keys:
        theirs = {"output_token_logprobs", "routed_experts"} & set(get(one, "meta_info") or {}) and "id" not in (get(one, "meta_info") or {})
        return "lmdeploy-generate" if theirs or ("prompt" in (body or {}) and "id" not in one["meta_info"]) else "sglang-generate"
    if "choices" in keys and (one["choices"] or one.get("object")): return "openai-completions" if any("text" in c for c in one["choices"] or [] if isinstance(c, dict)) or get(one, "object") == "text_completion" or ("/completions" in path and "/chat/" not in path) else "openai-chat"
    if "token" in keys or "generated_text" in keys: return "tgi-generate"
    if "text_output" in keys: return "triton-generate"
    if "done" in keys: return "ollama-chat" if "message" in keys else "ollama-generate"
    if {"content", "stop"} <= keys: return "llamacpp-completion"
    return by_path(path, body)


def by_path(path, body):
    ends = {"/chat/completions": "openai-chat", "/v1/completions": "openai-completions", "/v1/responses": "openai-responses", "/v1/messages": "anthropic-messages",
            "/api/v1/chat": "lmstudio-chat", "/converse-stream": "bedrock-converse", "/generate_stream": "tgi-generate", "/api/chat": "ollama-chat",
            "/api/generate": "ollama-generate", ":streamGenerateContent": "gemini-generate", ":generateContent": "gemini-generate", "/completion": "llamacpp-completion", "/completions": "llamacpp-completion", "/infill": "llamacpp-completion"}
    path = path.partition("?")[0]
    if path == "/" and "inputs" in (body or {}): return "tgi-generate"
    if path.startswith("/v2/models/"): return "triton-generate"
    if path.endswith("/generate") and not path.startswith("/api/"):
        return "tgi-generate" if "inputs" in (body or {}) else "lmdeploy-generate" if "prompt" in (body or {}) else "sglang-generate"
    return next((api for tail, api in ends.items() if path.endswith(tail)), "other")
