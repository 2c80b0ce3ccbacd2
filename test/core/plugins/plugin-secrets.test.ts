import { expect } from 'chai';
import type { LoadedConfig } from '../../../config/load-config.ts';
import { addSecrets, redactText } from '../../../core/plugins/plugin-secrets.ts';

/** Configuration with one secret, in a plugin named `signer`. */
const configWith = (secret: string): LoadedConfig =>
  ({
    config: {
      store: { group: 'store', name: 'memory', config: {} },
      instances: [{ group: 'plugins', name: 'signer', config: {} }],
      plain: () => ({ secret }),
      printable: () => ({ secret: '***' }),
    },
    builtins: [],
  }) as unknown as LoadedConfig;

describe('G61: secrets of several configurations in one process', () => {
  it('are redacted in the texts of a plugin that all of them have, until each has ended', () => {
    const removeFirst = addSecrets(configWith('first secret'));
    const removeSecond = addSecrets(configWith('second secret'));
    expect(redactText('signer', 'first secret, second secret')).not.to.match(/first secret|second secret/);
    removeSecond();
    expect(redactText('signer', 'first secret')).not.to.include('first secret');
    removeFirst();
    expect(redactText('signer', 'first secret')).to.equal('first secret');
  });
});
