import { type NativeRow, readCount, readObject } from '../../../core/index.ts';
import { modelPath } from './request.ts';

/** Gemini speaks its own format for every model it has. `references` lets callers name what lies in the operator's account. */
export function nativeRow(model: string, stream: boolean, references: boolean): Readonly<Record<string, NativeRow>> {
  const path = modelPath(model);
  return {
    gemini: {
      path: path + (stream ? ':streamGenerateContent?alt=sse' : ':generateContent'),
      count: { path: `${path}:countTokens`, response: (body) => readCount(readObject(body)['totalTokens']) },
      ...(references && { references }),
    },
  };
}
