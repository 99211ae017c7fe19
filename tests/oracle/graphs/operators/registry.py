"""The table of generators by operator."""

GENERATORS = {}
WEIGHTS = {}


def operator(*names, weight=1.0):
    """Registers generate(b, op) for these operators. weight: relative frequency with which it is drawn."""

    def register(function):
        for name in names:
            GENERATORS[name] = function
            WEIGHTS[name] = weight
        return function

    return register


def generate(b, op):
    return GENERATORS[op](b, op)
