#!/usr/bin/env python3
"""How often the 95 % intervals of a report hold the true value, as a table.

    coverage.py --bin DIR [--trials 2000] [--seed 1]

bench_coverage has the report's own code summarise samples whose percentiles are known: 1,000 times in a queue (M/M/1, 20 blocks of
time), and the gaps of 200 requests with 100 tokens each (clusters of whole requests). EXPECTED is what is to be reached, in points;
exit status 1 where a figure is further than TOLERANCE from it. An end that is absent is no bound, so it holds.
"""
import argparse, os, subprocess, sys

TOLERANCE = 5
EXPECTED = {("mm1", 0.5): (95, 93, 87), ("mm1", 0.8): (91, 80, 87)}      # p50, p90, p99
ROWS = [("mm1", 0.5), ("mm1", 0.8), ("gaps", 0.0), ("gaps", 0.2), ("gaps", 0.5)]
WHAT = {"mm1": "1,000 requests, M/M/1, rho {}", "gaps": "200 x 100 gaps, {} of variance per request"}


def measure(options, kind, knob):
    size = ["1000"] if kind == "mm1" else ["200", "100"]
    command = [os.path.join(options.bin, "bench_coverage"), kind, str(knob), *size, str(options.trials), str(options.seed)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [(100 * float(held), 100 * float(half_open)) for _, held, half_open in map(str.split, lines)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", required=True)
    p.add_argument("--trials", type=int, default=2000)
    p.add_argument("--seed", type=int, default=1)
    options = p.parse_args()
    off = 0
    print(f"{'95 % intervals that hold the true value, %':44} {'p50':>6} {'p90':>6} {'p99':>6}   expected       one end only: p99")
    for kind, knob in ROWS:
        figures, want = measure(options, kind, knob), EXPECTED.get((kind, knob))
        far = [abs(held - w) > TOLERANCE for (held, _), w in zip(figures, want or ())]
        off += any(far)
        said = " ".join(f"{w:2}" for w in want) if want else ""
        print(f"{WHAT[kind].format(knob):44} " + " ".join(f"{held:6.1f}" for held, _ in figures) + f"   {said:9}{' OFF' if any(far) else '':4}  {figures[2][1]:10.1f}")
    print(f"{options.trials:,} trials a row; a figure is good to {196 * (0.25 * 0.75 / options.trials) ** 0.5:.1f} points or better")
    return 1 if off else 0


if __name__ == "__main__": sys.exit(main())
