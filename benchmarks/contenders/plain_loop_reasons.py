"""The plain loop with a line of feedback for each check that fails."""

from contenders import plain_loop
from contenders.spec import checks_of, complaint


def prepare(spec, frame):
    return plain_loop.prepare(spec, frame), [complaint(check) for check in checks_of(spec)]


def run(prepared, frame):
    del frame
    (names, tests, parse, texts), complaints = prepared
    scores, rewards, feedback = [], [], []
    for text in texts:
        forms = text, text.lower(), parse(text)
        row = [float(test(forms[read])) for read, test in tests]
        scores.append(row)
        rewards.append(sum(row) / len(row))
        feedback.append("\n".join(line for line, score in zip(complaints, row, strict=True) if score < 1))
    verdicts = dict(zip(names, map(list, zip(*scores, strict=True)), strict=True))
    return {"reward": rewards, "feedback": feedback, **verdicts}
