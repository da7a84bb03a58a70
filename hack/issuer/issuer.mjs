// An OpenID Connect issuer for tests: everybody can log in, by a name that is in ISSUER_USERS. It prints its address, and
// ends with its standard input.
import { Provider } from 'oidc-provider';
import fs from 'node:fs';
import https from 'node:https';

const users = JSON.parse(process.env.ISSUER_USERS);
const server = https.createServer({ key: fs.readFileSync(process.env.ISSUER_KEY), cert: fs.readFileSync(process.env.ISSUER_CERT) });
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'polder',
      token_endpoint_auth_method: 'none',
      application_type: 'native',
      grant_types: ['authorization_code', 'refresh_token', 'urn:ietf:params:oauth:grant-type:device_code'],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/callback'],
    }],
    claims: { openid: ['sub'], groups: ['groups'] },
    scopes: ['openid', 'offline_access'],
    conformIdTokenClaims: false, // claims are in the ID token, where an API server reads them
    cookies: { keys: ['only for tests'] },
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true }, revocation: { enabled: true } },
    findAccount: async (_, id) => (users[id] ? { accountId: id, claims: async () => ({ sub: id, ...users[id] }) } : undefined),
    pkce: { required: () => true },
    rotateRefreshToken: true,
    ttl: { IdToken: Number(process.env.ISSUER_TTL), AccessToken: 600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600, DeviceCode: 600 },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
process.stdin.on('end', () => process.exit(0)).resume();
