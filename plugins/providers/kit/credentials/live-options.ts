import type { Credential, PluginApi } from '../../../../contract/index.ts';
import { OptionError } from '../../../../contract/index.ts';
import { AWS_HOSTS, AWS_OPTION, type AwsOptions, awsCredential, readAws } from './aws.ts';
import { GOOGLE_OPTION, type GoogleOptions, googleCredential, readGoogle } from './google.ts';

/** Options for credentials in place of a key, for any server with OpenAI's wire. */
export const LIVE_OPTIONS = Object.freeze({ aws: AWS_OPTION, google: GOOGLE_OPTION });

/** Sources of machine credentials; Google's metadata service has the same address as AWS's. */
export const LIVE_HOSTS = AWS_HOSTS;

/** Live credential for `openaiCompatible`; throws an {@link OptionError} for incompatible options. */
export function signedInBy(
  options: Readonly<Record<string, unknown>>,
  baseUrl: string,
): { readonly liveCredential?: (api: PluginApi) => Credential } {
  const [aws, google] = [options['aws'] as AwsOptions | undefined, options['google'] as GoogleOptions | undefined];
  if (aws && google) throw new OptionError('/google', 'cannot be combined with `aws`', 'Remove one of them.');
  const keys = options['apiKey'] ?? options['apiKeys'];
  if (aws) {
    readAws(aws, keys);
    return { liveCredential: (api) => awsCredential(api, aws, baseUrl) };
  }
  if (!google) return {};
  if (keys !== undefined) throw new OptionError('/google', 'cannot be combined with `apiKey`', 'Remove one of them.');
  readGoogle(google);
  return { liveCredential: (api) => googleCredential(api, google) };
}
