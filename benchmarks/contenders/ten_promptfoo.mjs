// The ten checks by promptfoo's own assertions: a line of JSON in (texts), then for each line "go" a line of JSON out.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const found = createRequire(process.argv[2] + '/');
const { default: promptfoo } = await import(pathToFileURL(found.resolve('promptfoo')));
const KEYS = `(() => { try { const value = JSON.parse(output); return value !== null && typeof value === 'object' && 'answer' in value && 'score' in value; } catch { return false; } })()`;
const test = {
  assert: [
    { type: 'icontains', value: 'the' },
    { type: 'icontains', value: 'However' },
    { type: 'not-icontains', value: 'as an AI' },
    { type: 'not-contains', value: "I'm sorry" },
    { type: 'regex', value: '\\b\\d+(?:\\.\\d+)?\\b' },
    { type: 'javascript', value: String.raw`/^\s*(?:[-*]|\d+\.)\s/m.test(output)` },
    { type: 'javascript', value: '[...output].length >= 200' },
    { type: 'javascript', value: '[...output].length <= 4000' },
    { type: 'is-json' },
    { type: 'javascript', value: KEYS },
  ],
};
let texts;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (texts === undefined) {
    texts = JSON.parse(line);
    console.log('ready');
    continue;
  }
  const scored = [];
  for (const output of texts) {
    const graded = await promptfoo.assertions.runAssertions({ test, providerResponse: { output } });
    scored.push([graded.score, ...graded.componentResults.map((one) => one.score)]);
  }
  console.log(JSON.stringify(scored));
}
