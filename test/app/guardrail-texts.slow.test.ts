import { testTexts } from './guardrail-texts.ts';

describe('all texts of requests in guardrails', () => testTexts('all'));
