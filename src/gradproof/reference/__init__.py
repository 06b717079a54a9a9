"""The numeric side: derivatives from function values alone, each with its own error bar.

In reading order.

What is measured
    estimate      `Estimate`: value, bar, spread, kind; `Goal`: the bar that is narrow enough
    field         the function around a point as the steps see it: values, rounding floor, how far steps may go
    steps         the scale of every coordinate, first steps, random directions
    complexstep   derivatives exact to rounding, where the function takes complex numbers and is analytic

From few evaluations to many
    glance        two a direction, and no more where the analytic side agrees to eight digits
    stencil       four or six: central differences at several steps, and what they say about themselves
    ladder        stencils at many steps: climb or descend until the bar is narrow enough
    lepski        which of the rungs to believe
    noise         how noisy the values are; stairs
    leaps         treads that slope, where large terms cancel: short steps see another slope than long ones
    kinks         what one-sided slopes allow to say: kink, border of the domain, jump, noise
    courses       one-sided slopes that crawl to a limit, or grow without end
    decades       one line at all steps, for plots

What a coordinate alone does not show
    bends         where outputs bend like a kink along a direction
    surroundings  slopes at points around: the kink of a tie that no single coordinate shows

Coarse formats
    widest        the program in the widest format that it runs in, and whether that is the same function
    inside        functions of float64 that compute in float32 inside
    rounding      whether a number is off by rounding: points nearby tell
    grid          the numbers next to the point, in half precision
    tread         the stairs that a point of float32 lies on
    blur          stairs of known height made smooth
"""
