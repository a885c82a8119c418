"""Names that several rooms share: columns of rollouts and results, kinds of verifiers, the prefix of columns of our own."""

COMPLETION = "completion"
TASK_ID = "task_id"

OUTPUT_SCHEMA, OUTPUT_SCHEMA_CAMEL = "expected_output_schema", "expectedOutputSchema"
"""Column of the keys that a task expects of an output, in both spellings; a row's value is in the first if it is not null."""

LENGTH = "length"
"""Column of the lengths of the scored texts, if they are asked for."""

CUT_OFF, OUTCOME = "cut_off", "outcome"
"""Columns of whether a rollout ended at a limit, and of its outcome, if they are asked for."""

VERIFIER, FN_NAME, EXPECTED, PARAMS = VERIFIER_COLUMNS = ("verifier", "fn_name", "expected", "params")
"""Columns in which a row brings its own verifier."""

GOLD_COLUMNS = (EXPECTED, "answer", "target")
"""Columns of golds, which are compared by their ``str()``, so that 42 differs from 42.0; a function reads the first of them."""

NATIVE = "native"
"""Kind of a verifier that is a list of checks."""

IN_PROCESS = "in_process"
"""Kind of a verifier that a row brings: a registered function."""

ROW_VERIFIER = "row_verifier"
"""Id of the verifiers that rows bring, where they run beside specs."""

FUNCTION = "function"
"""Kind of a verifier that is one function of a rubric."""

PROVENANCE_KEY = "assay"
"""Key of the provenance (JSON) in the metadata of a parquet footer."""

MANIFEST = "_manifest.json"
"""File in a folder of parts that describes the run."""

HIDDEN = "__assay/"
"""Prefix of every column that the engine adds for itself; none of them reaches a result."""

TEXT = HIDDEN + "text"
"""The completion's text: String, null where the completion is null."""

BAD = HIDDEN + "bad"
"""Present where a row may be unreadable, or a request failed: String, why the row is unscored; null where it is fine."""

TASK_FOUND = HIDDEN + "task"
"""Present when tasks were joined: true where the row's task was found."""
