import type { Credential, PluginApi } from '../../../../contract/index.ts';
import { OptionError } from '../../../../contract/index.ts';
import { AWS_HOSTS, AWS_OPTION, type AwsOptions, awsCredential, readAws } from './aws.ts';
import { GOOGLE_OPTION, type GoogleOptions, googleCredential, readGoogle } from './google.ts';

/** The options by which any server with OpenAI's wire is signed in to in place of a key. */
export const LIVE_OPTIONS = Object.freeze({ aws: AWS_OPTION, google: GOOGLE_OPTION });

/** Where credentials of machines come from; those of Google have the same address as those of AWS. */
export const LIVE_HOSTS = AWS_HOSTS;

/** What `openaiCompatible` is told of these options; throws an {@link OptionError} for what does not go together. */
export function signedInBy(
  options: Readonly<Record<string, unknown>>,
  baseUrl: string,
): { readonly liveCredential?: (api: PluginApi) => Credential } {
  const [aws, google] = [options['aws'] as AwsOptions | undefined, options['google'] as GoogleOptions | undefined];
  if (aws && google)
    throw new OptionError('/google', 'stands beside `aws`', 'Keep the one that calls are to be made with.');
  const keys = options['apiKey'] ?? options['apiKeys'];
  if (aws) {
    readAws(aws, keys);
    return { liveCredential: (api) => awsCredential(api, aws, baseUrl) };
  }
  if (!google) return {};
  if (keys !== undefined)
    throw new OptionError('/google', 'stands beside an `apiKey`', 'Keep the one that calls are to be made with.');
  readGoogle(google);
  return { liveCredential: (api) => googleCredential(api, google) };
}
