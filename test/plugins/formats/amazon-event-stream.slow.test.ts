import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { createFrameReader } from '../../../plugins/formats/bedrock/event-stream.ts';
import { amazonEvent } from '../../support/vendors/amazon-frames.ts';
import { until } from '../../support/wait.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** Bytes outside the heap, after garbage collection. */
function memoryHeld(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe('long frames of Amazon’s event streams', () => {
  it('use no more memory than they report, however small their pieces are, and whatever was read with each', async () => {
    const frame = amazonEvent('chunk', { bytes: 'x'.repeat(2_000_000) });
    let reported = 64 * 1024;
    const reader = createFrameReader({ onGrowth: (more) => (reported += more) });
    const before = memoryHeld();
    // Each byte has its own memory, as after separate reads of a socket.
    const pushAlone = (byte = 0): void => {
      const read = new Uint8Array(64 * 1024);
      read[0] = byte;
      expect(reader.push(read.subarray(0, 1))).to.have.length(0);
    };
    for (let at = 0; at < 2000; at += 1) pushAlone(frame[at]);
    await until('a piece is let go', () => memoryHeld() - before <= reported);
    for (let at = 2000; at < 1_500_000; at += 100) reader.push(frame.subarray(at, at + 100));
    await until('no more is held than was reported', () => memoryHeld() - before <= reported);
    expect(reported, 'reported bytes').to.be.at.most(frame.length);
    expect(reader.push(frame.subarray(1_500_000))).to.have.length(1);
    await until('the frame is let go', () => memoryHeld() - before <= 64 * 1024);
  });
});
