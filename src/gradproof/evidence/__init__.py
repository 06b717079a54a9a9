"""How much is looked at: every entry of the Jacobian, or random combinations of all of them.

In reading order; `gathering`, one floor up, calls what is at the top of each group.

The question
    plan        every entry, stored entries or probes: which, and why
    gathered    `Task`, what is to be judged, and `Gathered`, what came of it
    scales      the sizes that entries are judged by; changes that do not matter
    lines       the tolerance of every entry, also in rows and columns that are small beside others

Every entry
    units       the Jacobian by one mode, and whether the rule is linear
    forward     the same by forward mode, several columns at a time
    exhaustive  the whole comparison: glance, ladder, second opinion, excuses
    glanced     what a first look at all columns gives; `together` makes it of groups of columns, `alone` of single ones
    together    columns that move together, by different amounts; held against what is claimed of them
    groups      which columns move together; `lengths`: how far
    lengths
    alone       each column by itself
    sure        comparisons where the glance left no doubt
    tops        where the entries of the Jacobian are largest
    blocks      comparisons where it did: one for each pair of leaves, with the worst entries
    jitter      what looks wrong may be rounding: excuses, by points nearby
    ties        coordinates that share a kink: derivatives that are valid one by one but not together
    faint       lines so small that nothing was proved about them
    between     the modes against each other; a Hessian against its transpose
    crosswise   for a verdict alone: columns and rows in random sums, by two modes
    rowsums     the same by reverse mode

Stored entries of a sparse Jacobian
    sparse      the whole comparison, a group of columns at a time
    colouring   columns that share no row
    blame       from a group that deviates to the column
    named       from the column to the entry

Probes
    sums        the analytic side: w . (J u), pair of leaves by pair of leaves, and whether the rule is linear
    measure     the numeric side; where the function is not smooth, the probe is taken apart
    folds       which outputs bend, and along which coordinates
    columns     those coordinates, judged one by one
    probes      the verdict on every pair of leaves
    bisect      from a probe that disagrees to the entry

Below double precision
    native      the rule's own numbers against those of float64
    asked       the cotangents and tangents of that comparison
    grouped     the same, several columns at a time
    sides       where the two are further apart than rounding

What is said
    nans        values and gradients that are not finite
    entries     single entries out of arrays
    wording     the sentences of findings
    trace       one derivative over many steps, for plots
"""
