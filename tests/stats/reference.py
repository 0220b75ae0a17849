"""The statistics of a report, computed a second time from their definitions alone: slowly, and exactly.

Values are whole numbers or fractions, never floating point, until the last step, so that a tie is a tie and a rank is a rank:
`(n - 1) p` and `S <= 1 - p` have no rounding here. Percentiles p are fractions, of_text("99.9") makes one.
"""
import bisect, functools, itertools, math
from fractions import Fraction
from statistics import NormalDist

LINEAR, NEAREST_RANK = "linear", "nearest-rank"
BLOCKS, CLUSTERED_FROM, TOKEN_REQUESTS = 20, 200, 20     # blocks of time; fewest requests in blocks; fewest in a token series
SEEN, CENSORED, NEVER = "seen", "censored", "never"


def of_text(percent):
    return Fraction(percent) / 100


class Ends(list):
    """An interval, and how it would be were t a little off: ends(slack)."""
    def __init__(self, ends, again):
        super().__init__(ends)
        self.again = again


class Samples:
    """Values with weights: k samples of one value count as k, in order."""

    def __init__(self, weighted):
        pairs = sorted((v, k) for v, k in weighted if k)
        self.values = [v for v, _ in pairs]
        self.upto = list(itertools.accumulate(k for _, k in pairs))   # how many samples up to and with this one
        self.n = self.upto[-1] if pairs else 0
        self.sum = sum(v * k for v, k in pairs)
        self.squares = sum(v * v * k for v, k in pairs)

    def at(self, rank):
        """The rank-th sample in order, from 0."""
        return self.values[bisect.bisect_right(self.upto, rank)]

    def count_upto(self, q):
        i = bisect.bisect_right(self.values, q)
        return self.upto[i - 1] if i else 0

    def quantile(self, p, rule=LINEAR):
        if self.n == 0: return None
        if rule == NEAREST_RANK: return self.at(max(math.ceil(self.n * p), 1) - 1)
        low = math.floor((self.n - 1) * p)
        a, part = self.at(low), (self.n - 1) * p - low
        return a + (self.at(low + 1) - a) * part if part else a

    def mean(self):
        return Fraction(self.sum) / self.n if self.n else None

    def sd(self):
        if self.n < 2: return None
        return math.sqrt((Fraction(self.squares) - Fraction(self.sum) ** 2 / self.n) / (self.n - 1))


@functools.cache
def t975(df):
    """Student's t with 97.5 % below it: its distribution has a closed form for whole df, and is then halved into."""
    def within(t):      # P(|T| <= t)
        angle = math.atan(t / math.sqrt(df))
        c2, term, total = math.cos(angle) ** 2, 1.0, 0.0
        if df % 2:
            term = math.cos(angle)
            for j in range(1, df - 1, 2):
                total += term
                term *= c2 * (j + 1) / (j + 2)
            return 2 / math.pi * (angle + math.sin(angle) * total)
        for j in range(0, df - 1, 2):
            total += term
            term *= c2 * (j + 1) / (j + 2)
        return math.sin(angle) * total
    lo, hi = 0.0, 13.0
    for _ in range(80):
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if within(mid) < 0.95 else (lo, mid)
    return (lo + hi) / 2


@functools.cache
def least(p):
    """Fewest samples with both ends by the binomial: neither all nor none of them below the percentile is likely."""
    n = 1
    limit = math.log(0.025)
    for q in (p, 1 - p):
        if 0 < q < 1: n = max(n, math.ceil(limit / math.log(q)))
    return n


@functools.cache
def binomial_ranks(n, p):
    """(l, u), from 1, None where there is none. Exact: everything is multiplied by the denominator's n-th power."""
    a, b = p.numerator, p.denominator
    mass = [math.comb(n, j) * a ** j * (b - a) ** (n - j) for j in range(n + 1)]
    tail = b ** n                                               # * 0.025, as 40 x <= tail
    below = list(itertools.accumulate(mass))                    # P(B <= j)
    above = list(itertools.accumulate(reversed(mass)))[::-1]    # P(B >= j)
    lows = [j for j in range(1, n + 1) if 40 * below[j - 1] <= tail]
    highs = [j for j in range(1, n + 1) if 40 * above[j] <= tail]
    return (max(lows) if lows else None), (min(highs) if highs else None)


def interval_iid(samples, p):
    low, high = binomial_ranks(samples.n, p) if samples.n else (None, None)
    return (samples.at(low - 1) if low else None), (samples.at(high - 1) if high else None)


def interval_clusters(samples, clusters, p, rule=LINEAR, slack=0):
    """clusters: the same samples, as lists of (value, weight). Fewer samples than the binomial needs: the outer end is outside the data.

    slack: by how much t is off, relatively.
    """
    if len(clusters) < 2: return None, None
    reach = t975(len(clusters) - 1) * (1 + slack) * standard_error(samples, clusters, p, samples.quantile(p, rule))
    ends = Fraction(float(p) - reach), Fraction(float(p) + reach)
    low, high = (samples.quantile(e, rule) if 0 <= e <= 1 else None for e in ends)
    if samples.n < least(p): low, high = (low, None) if p > Fraction(1, 2) else (None, high)
    return low, high


def standard_error(samples, clusters, p, q):
    """Of the share of samples up to q."""
    g, squares = len(clusters), 0
    for cluster in clusters:
        squares += (sum(k for v, k in cluster if v <= q) * p.denominator - p.numerator * sum(k for _, k in cluster)) ** 2
    return math.sqrt(Fraction(g * squares, (g - 1) * p.denominator ** 2)) / samples.n


def summary(values, percentiles, rule=LINEAR):
    """Of one value a request, by t_arrive."""
    weighted = [(v, 1) for v in values]
    samples, n = Samples(weighted), len(values)
    blocks = [[] for _ in range(BLOCKS)]
    for i, v in enumerate(weighted): blocks[i * BLOCKS // n].append(v)
    ends = lambda p, slack: interval_clusters(samples, blocks, p, rule, slack) if n >= CLUSTERED_FROM else interval_iid(samples, p)
    return describe(samples, percentiles, rule, ends, False)


def token_summary(requests, percentiles, rule=LINEAR):
    """Of requests, each a list of (value, weight)."""
    requests = [r for r in requests if r]
    samples = Samples(itertools.chain.from_iterable(requests))
    return describe(samples, percentiles, rule, lambda p, slack: interval_clusters(samples, requests, p, rule, slack), len(requests) < TOKEN_REQUESTS)


def describe(samples, percentiles, rule, ends, few):
    some = samples.n > 0
    out = {"withheld": few, "n": samples.n, "mean": samples.mean(), "sd": samples.sd(), "min": samples.values[0] if some else None, "max": samples.values[-1] if some else None}
    for name, p in percentiles.items():
        out[name] = samples.quantile(p, rule)
        out[name + "_ci95"] = Ends(ends(p, 0) if some else (None, None), functools.partial(ends, p))
        out[name + "_few"] = few or None in out[name + "_ci95"] or samples.n < least(p)
    return out


def product_limit(lives, percentiles):
    """lives: (value, fate); the value of NEVER is not looked at. {name: smallest seen v with S(v) <= 1 - p, else inf, None: none seen}"""
    seen, left = {}, []
    for v, fate in lives:
        if fate == SEEN: seen[v] = seen.get(v, 0) + 1
        if fate != NEVER: left.append(v)
    left.sort()
    out, over, under = {name: math.inf if seen else None for name in percentiles}, 1, 1       # S = over / under
    for v in sorted(seen):
        at_risk = len(lives) - bisect.bisect_left(left, v)      # one censored at v was still waiting at v
        over, under = over * (at_risk - seen[v]), under * at_risk
        for name, p in percentiles.items():
            if out[name] == math.inf and over * p.denominator <= (p.denominator - p.numerator) * under: out[name] = v
    return out


def wilson(good, n):
    if n == 0: return None, None
    z2, share = NormalDist().inv_cdf(0.975) ** 2, good / n
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)
