// Checks by promptfoo's own assertions: a line of JSON in (assertions and texts), then for each line "go" a line of JSON out.
import { createInterface } from 'node:readline';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const found = createRequire(process.argv[2] + '/');
const { default: promptfoo } = await import(pathToFileURL(found.resolve('promptfoo')));
let test, texts;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  if (texts === undefined) {
    const asked = JSON.parse(line);
    [test, texts] = [{ assert: asked.assert }, asked.texts];
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
