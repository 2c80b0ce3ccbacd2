/**
 * The knowledge base on generated documents: `node --import tsx/esm --expose-gc bench/rag.ts [--passages 10000]`. Printed are the time of
 * an update in a process of its own, the longest that it held up the gateway's event loop, a query by words and with
 * vectors of 384 dimensions, and the memory that the vectors take. No model is behind the vectors: only speed is measured.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { parseArgs } from 'node:util';
import { openIndex } from '../plugins/agents/rag/database.ts';
import { createIndexReader } from '../plugins/agents/rag/index-reader.ts';
import { searchPassages } from '../plugins/agents/rag/search.ts';
import { startWorker } from '../plugins/agents/rag/start-worker.ts';
import type { UpdateJob } from '../plugins/agents/rag/update-job.ts';
import { loadVectorTable } from '../plugins/agents/rag/vector-table.ts';

const { values } = parseArgs({ options: { passages: { type: 'string', default: '10000' } } });
const PASSAGES = Number(values.passages);
const PER_FILE = 50;
const WORDS = 120;
const VOCABULARY = 20_000;
const DIMENSIONS = 384;
const QUERIES = 500;

let seed = 42;
/** From 0 to 1, the same at every run. */
function random(): number {
  seed = (seed * 1_664_525 + 1_013_904_223) % 2 ** 32;
  return seed / 2 ** 32;
}

/** Word n is used about 1/n as often as the first, as in real text. */
function word(): string {
  return `w${Math.floor(VOCABULARY ** random())}`;
}

function vector(): Float32Array {
  const values = Float32Array.from({ length: DIMENSIONS }, () => random() - 0.5);
  const length = Math.hypot(...values);
  return values.map((value) => value / length);
}

function percentile(times: readonly number[], share: number): string {
  return `${(times.toSorted((a, b) => a - b)[Math.floor(times.length * share)] ?? 0).toFixed(1)} ms`;
}

function time(run: () => void): number {
  const started = performance.now();
  run();
  return performance.now() - started;
}

const folder = mkdtempSync(path.join(os.tmpdir(), 'tollgate-bench-rag-'));
try {
  const documents = path.join(folder, 'documents');
  mkdirSync(documents);
  for (let file = 0; file < PASSAGES / PER_FILE; file += 1) {
    const sections = Array.from(
      { length: PER_FILE },
      () => `## ${word()} ${word()}\n\n${Array.from({ length: WORDS }, word).join(' ')}\n`,
    );
    writeFileSync(path.join(documents, `${file}.md`), sections.join('\n'));
  }
  const database = await openIndex(folder, 200);
  const reader = createIndexReader(database);
  const job: UpdateJob = {
    folder: documents,
    indexFolder: folder,
    holder: 'bench',
    chunkWords: 300,
    maxFileBytes: 20_000_000,
    maxChunks: 500_000,
    refused: [],
  };
  const events = { embed: async (texts: readonly string[]) => texts.map(vector), onFile() {}, onFailed() {} };
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const update = async (more: Partial<UpdateJob>): Promise<string> => {
    const started = performance.now();
    const outcome = await startWorker({ ...job, ...more }, events).outcome;
    if (!('result' in outcome)) throw new Error(JSON.stringify(outcome));
    return `${((performance.now() - started) / 1000).toFixed(1)} s`;
  };
  console.log(`passages              ${PASSAGES}, of ${WORDS} words, in ${PASSAGES / PER_FILE} files`);
  console.log(`index, words          ${await update({})}`);
  delay.disable();
  console.log(`event loop held up    ${(delay.max / 1e6).toFixed(0)} ms at most meanwhile`);
  console.log(`index, with vectors   ${await update({ model: 'bench' })} (vectors made at once)`);
  console.log(`an update of nothing ${await update({ model: 'bench' })}`);
  console.log(`index file            ${(statSync(path.join(folder, 'rag.db')).size / 1e6).toFixed(0)} MB`);

  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const started = performance.now();
  const table = await loadVectorTable(reader, 'bench');
  console.log(`vectors loaded        ${table.size} in ${(performance.now() - started).toFixed(0)} ms`);
  globalThis.gc?.();
  console.log(`memory of vectors     ${((process.memoryUsage().rss - before) / 1e6).toFixed(0)} MB`);

  const queries = Array.from({ length: QUERIES }, () => Array.from({ length: 4 }, word).join(' '));
  const words = queries.map((query) => time(() => searchPassages(reader, query, 5, undefined)));
  const hybrid = queries.map((query) => {
    const near = vector();
    return time(() => searchPassages(reader, query, 5, (depth) => table.nearest(near, depth)));
  });
  console.log(`query by words        p50 ${percentile(words, 0.5)}, p95 ${percentile(words, 0.95)}`);
  console.log(`query, hybrid         p50 ${percentile(hybrid, 0.5)}, p95 ${percentile(hybrid, 0.95)}`);
  console.log(`memory of the process ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB`);
  database.close();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
