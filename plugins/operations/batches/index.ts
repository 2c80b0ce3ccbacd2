import { definePlugin, isObject, parseDuration, parseSize, readString } from '../../../contract/index.ts';
import type { BatchResponse } from '../../formats/kit/index.ts';
import { anthropicBatches } from './anthropic-batches.ts';
import { BATCH_REQUEST, createBeginning, estimateBatch } from './begin.ts';
import { addUploadRoutes, googleBatches } from './google-batches.ts';
import { openAiBatches } from './openai-batches.ts';
import { addFileRoutes } from './openai-files.ts';
import { createRecords } from './records.ts';
import { addBatchRoutes } from './routes.ts';
import { Settler } from './settle.ts';

/**
 * Batches at vendors that support them, in OpenAI's format (with its files), Anthropic's and Google's. They are
 * created, reserved, and settled by request.
 */
export default definePlugin({
  name: 'batches',
  kind: 'operation',
  apiVersion: 1,
  permissions: ['ledger'],
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      maxFileSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '32mb',
        description:
          'Maximum size of a request file or batch body, which is in memory during the check. Vendors accept 200 MB.',
      },
      lookEvery: {
        type: 'string',
        format: 'duration',
        default: '1m',
        description: 'Interval at which one process refreshes the status of all running batches.',
      },
    },
  },
  setup(api, config) {
    const records = createRecords(api);
    const everyMs = parseDuration(config.lookEvery);
    const settler = new Settler(api, records, everyMs);
    const { attempt, begin } = createBeginning(api, records, settler);
    api.operation({
      name: 'batches',
      request: BATCH_REQUEST,
      // The texts of requests are checked one by one, when they are read.
      texts: {
        request: [],
        response: [],
        unseen: {
          sides: ['response'],
          what: 'the responses of a batch',
          instead: 'Send the requests one by one.',
        },
      },
      estimate: estimateBatch,
      attempt,
      isResponse: (value): value is BatchResponse =>
        isObject(value) && isObject(value['batch']) && readString(value['callId']) !== undefined,
    });
    const parts = { records, settler, begin, maxBytes: parseSize(config.maxFileSize) };
    addFileRoutes(api, parts);
    addUploadRoutes(api);
    for (const format of [openAiBatches(api, parts), anthropicBatches(api, parts), googleBatches(api, parts)])
      addBatchRoutes(api, parts, format);
    api.onReady(() => {
      let running: Promise<void> | undefined;
      const look = (): void => {
        running ??= settler
          .sweep()
          .catch((err: unknown) =>
            api.log.warn({ err }, 'status of batches could not be refreshed; the next interval retries'),
          )
          .finally(() => (running = undefined));
      };
      const timer = setInterval(look, everyMs);
      timer.unref();
      api.onClose(async () => {
        clearInterval(timer);
        await running;
      });
      look();
    });
  },
});
