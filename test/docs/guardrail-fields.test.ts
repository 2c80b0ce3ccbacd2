import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { EXEMPT_FIELDS } from '../../contract/texts.ts';

describe('docs/plugins/guardrails.md', () => {
  it('G66: lists the fields that guardrails do not look into', () => {
    const page = readFileSync(new URL('../../docs/plugins/guardrails.md', import.meta.url), 'utf8');
    const [, section = ''] = /### Fields that are not looked into\n([\s\S]*?)\n## /.exec(page) ?? [];
    const listed = [...section.matchAll(/`(\w+)`/g)].map(([, field]) => field);
    expect(listed).to.have.members([...EXEMPT_FIELDS]);
  });
});
