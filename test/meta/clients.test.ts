import { expect } from 'chai';
import { readSetups } from '../../cli/init.ts';
import { OPENAI_MODELS } from '../clients/openai-vendor.ts';
import {
  readBudgets,
  readMatrix,
  readModels,
  readOperations,
  readSetUpPart,
  readWithoutChat,
  rowOf,
  writeSetUps,
} from '../clients/page.ts';
import { CLIENTS, canChat, DEAR_MODELS, ON_BUDGET, ON_OPENAI, ON_OPERATIONS, OPERATIONS } from '../clients/table.ts';

describe('docs/clients.md', () => {
  const runs = CLIENTS.flatMap((row) => row.runs);

  it('has a row for each client that npm run clients runs', () => {
    expect(Object.keys(readMatrix())).to.deep.equal(runs.filter(canChat).map(rowOf));
    const others = runs.filter((run) => !canChat(run));
    expect(Object.keys(readWithoutChat())).to.deep.equal(others.map(rowOf));
  });

  it('streams tools with each client that chats, Python’s requests among them (42)', () => {
    const rows = Object.entries(readMatrix());
    expect(rows.map(([row]) => row).join()).to.include('requests');
    for (const [row, cells] of rows) expect(cells['tools, streamed'], row).to.match(/^(?:works|emulated)/);
  });

  it('has no failing cell', () => {
    const tables = [readMatrix(), readWithoutChat(), readOperations()];
    const failing = tables
      .flatMap(Object.entries<Record<string, string>>)
      .flatMap(([row, cells]) =>
        Object.entries(cells).flatMap(([behaviour, cell]) => (cell.startsWith('fails') ? [`${row} ${behaviour}`] : [])),
      );
    expect(failing).to.deep.equal([]);
  });

  it('E73: has a row for each SDK with operations other than chat, and each operation works with one of them', () => {
    const found = readOperations();
    const titles = Object.values(ON_OPERATIONS).flatMap((rows) => rows.map(({ title }) => title));
    expect(Object.keys(found)).to.deep.equal(titles);
    expect(titles.filter((title) => Object.keys(found[title] ?? {}).length === 0)).to.deep.equal([]);
    const working = Object.values(found).flatMap((cells) =>
      Object.keys(cells).filter((name) => cells[name] === 'works'),
    );
    expect(working).to.include.members([...OPERATIONS]);
    expect(CLIENTS.map(({ id }) => id)).to.include.members(Object.keys(ON_OPERATIONS));
  });

  it('E13: shows that clients of other formats run a tool loop on each current model of OpenAI', () => {
    const works = Object.fromEntries(OPENAI_MODELS.map((model) => [model, 'works']));
    expect(readModels()).to.deep.equal(Object.fromEntries(ON_OPENAI.map((title) => [title, works])));
    expect(runs.map(({ title }) => title)).to.include.members([...ON_OPENAI]);
  });

  it('E9: shows that Claude Code, Codex and the AI SDK run a tool loop on expensive models with a budget of 1 USD a day', () => {
    const works = Object.fromEntries(Object.keys(DEAR_MODELS).map((model) => [model, 'works']));
    expect(readBudgets()).to.deep.equal(Object.fromEntries(ON_BUDGET.map((client) => [client, works])));
    expect(runs.map(rowOf)).to.include.members([...ON_BUDGET]);
  });

  it('has the set-up of every client as printed by tollgate init, and each was run', () => {
    expect(readSetUpPart()).to.equal(writeSetUps());
    expect([...new Set(runs.map(({ setup }) => setup))].toSorted()).to.deep.equal(Object.keys(readSetups()).toSorted());
  });
});
