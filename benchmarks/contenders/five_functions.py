"""A rubric of five Python functions, of the classes of a module. The weights are powers of two: every order of addition is exact."""


def correct(parser, completion, answer):
    return 1.0 if parser.parse_answer(completion) == answer else 0.0


def brief(completion):
    return max(0.0, 1.0 - len(completion[-1]["content"]) / 2048)


def offers_refund(completion):
    return 1.0 if "refund" in completion[-1]["content"] else 0.0


def easy(info, **kwargs):
    return 1.0 if info["level"] == 0 and kwargs["task"] == "sums" else 0.0


def make(module):
    """Make the rubric."""
    parser = module.XMLParser(["think", "answer"])
    funcs = [correct, parser.get_format_reward_func(), brief, offers_refund, easy]
    return module.Rubric(funcs=funcs, weights=[1.0, 0.25, 0.125, -0.5, 0.0], parser=parser)
