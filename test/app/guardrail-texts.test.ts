import { testTexts } from './guardrail-texts.ts';

describe('texts of requests in guardrails', () => testTexts('sample'));
