r"""Plan before you measure: what an interval costs in minutes, forecast from a pilot.

The logarithm of an arm's throughput at one place (a workload at one concurrency), measured in `R` repeats with windows
of `W` seconds, has the variance

.. math:: V(R, W) = \frac{\tau^2}{\min(N, q R W)} + \frac{\sigma^2}{R W} + \frac{\beta^2}{R}

- **texts**, :math:`\tau^2`: the variance between prompts of log tokens per step. Windows serve `q` answers a second;
  with other prompts in each repeat, these are other prompts until the workload's `N` have all been served. Then the set
  is used up, and :math:`\tau^2 / N` stays, however long the lab runs: an interval for *prompts like these* has a floor
  that only more prompts lower.
- **steps**, :math:`\sigma^2`: noise inside a window. It is white on the scale of a window, so that it falls with
  seconds. Fuller batches average over more rows, which is why it is estimated at each concurrency.
- **the machine**, :math:`\beta^2`: what changes from one repeat to the next and not within. Only more repeats lower it.
  It is estimated for each arm alone: an arm that drafts scatters more than its baseline, and a pool of both would halve
  its variance.

A speed-up's logarithm has the arm's variance plus the baseline's. Standing side by side buys nothing in that sum: the
two are measured one after another, and no correlation between them is assumed.

**Shares of the time.** The variance is convex in the seconds, and so is the search for the fewest seconds that reach a
half-width. All `n` arms of a place share its baseline: where all scatter alike, the baseline's best share is
:math:`\sqrt n` times an arm's (Neyman's square-root allocation; Dunnett's comparison of several treatments with a
control). What each cell loses besides (a ramp until every slot has ended its warm-up answer, the end that is dropped,
the pause between cells) and each start of a server is part of the bill, and is why more repeats are not always better.

**A forecast is uncertain, too.** Three repeats give a variance with two degrees of freedom. Variances of steps are
therefore shrunk towards their arm's line over concurrency, by as much as the places agree (Smyth's moderated
variances), the machine's is pooled over an arm's places, and each forecast carries the range in which it will probably
come out.

Sources: J. Neyman, J. R. Stat. Soc. 97 (1934) 558-625; C. W. Dunnett, JASA 50 (1955) 1096-1121; G. K. Smyth, Stat.
Appl. Genet. Mol. Biol. 3 (2004) article 3; F. E. Satterthwaite, Biometrics Bulletin 2 (1946) 110-114.
"""
