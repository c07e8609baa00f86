'use strict';
/* Uses COM objects of a queue manager by node-dcom, by opnums:
 *
 *     node --openssl-legacy-provider com.js HOST DOMAIN USER QUEUE    (the password on standard input)
 *
 * node-dcom asks for another program's interface when it activates, and its NTLMv2 cannot work
 * (it throws away what Array.concat returns); both are put right here, and nothing else.
 */
const crypto = require('crypto');
const fs = require('fs');

const Responses = require('node-dcom/dcom/rpc/security/responses.js');
const NTLMAuthentication = require('node-dcom/dcom/rpc/security/ntlmauthentication.js');

const hmac = (key, ...parts) => crypto.createHmac('md5', key).update(Buffer.concat(parts)).digest();
const wide = (text) => Buffer.from(text, 'utf16le');

/* What its NTLMv1 is asked for becomes NTLMv2's answer; the domain is the one that it sends. */
const createType3 = NTLMAuthentication.prototype.createType3;
let type2, account;
NTLMAuthentication.prototype.createType3 = function (message, info) {
    [type2, account] = [message, info];
    return createType3.call(this, message, info);
};
Responses.prototype.getNTLM2SessionResponse = function (password, challenge, nonce) {
    const hash = crypto.createHash('md4').update(wide(password)).digest();
    const key = hmac(hash, wide(account.username.toUpperCase() + account.domain.toUpperCase()));
    const time = Buffer.alloc(8);
    time.writeBigUInt64LE((BigInt(Date.now()) + 11644473600000n) * 10000n);
    const blob = Buffer.concat([
        Buffer.from('0101000000000000', 'hex'), time, Buffer.from(nonce), Buffer.alloc(4),
        Buffer.from(type2.getTargetInformation()), Buffer.alloc(4),
    ]);
    return [...hmac(key, Buffer.from(challenge), blob), ...blob];
};

const activation = require.resolve('node-dcom/dcom/core/RemActivation.js');
const RemActivation = require(activation);
const wanted = { iid: '' };
require.cache[activation].exports = class extends RemActivation {
    constructor(clsid) {
        super(clsid, [wanted.iid]);
    }
};
const { ComServer, Session, CallBuilder, ComString, ComValue, Flags, Types, Clsid } = require('node-dcom');

const QUEUE_INFO = ['d7d6e07c-dccd-11d0-aa4b-0060970debae', 'eba96b1d-2168-11d3-898c-00e02c074f6b'];

async function object(host, domain, user, password, [clsid, iid]) {
    wanted.iid = iid;
    let session = new Session();
    session = session.createSession(domain, user, password);
    session.setGlobalSocketTimeout(15000);
    const server = new ComServer(new Clsid(clsid), host, session);
    await server.init();
    const unknown = await server.createInstance();
    return { session, object: await unknown.queryInterface(iid) };
}

const BSTR = Flags.FLAG_REPRESENTATION_STRING_BSTR;

/* node-dcom counts methods from behind those of IUnknown; the values that a method returns. */
async function call(on, opnum, fill) {
    const builder = new CallBuilder(true);
    builder.setOpnum(opnum - 3);
    fill(builder);
    await on.call(builder);
    if (builder.hresult) throw new Error((builder.hresult >>> 0).toString(16));
    return builder.getResults().map((result) => result.getValue());
}
const put = (on, opnum, text) => call(on, opnum, (to) => to.addInParamAsString(text, BSTR));
const text = (to) => to.addOutParamAsObject(new ComValue(new ComString(BSTR), Types.COMSTRING), Flags.FLAG_NULL);
const number = (to) => to.addOutParamAsType(Types.INTEGER, Flags.FLAG_NULL);
const get = async (on, opnum, type) => (await call(on, opnum, type))[0];

(async () => {
    const [host, domain, user, queue] = process.argv.slice(2);
    const password = fs.readFileSync(0, 'utf8').trim();
    const { session, object: info } = await object(host, domain, user, password, QUEUE_INFO);
    await put(info, 13, queue);
    await call(info, 35, () => {});
    console.log(`path=${(await get(info, 12, text)).getString()}`);
    console.log(`label=${(await get(info, 10, text)).getString()}`);
    console.log(`quota=${await get(info, 21, number)}`);
    await put(info, 11, 'changed by Node');
    await call(info, 36, () => {});
    await put(info, 13, '.\\private$\\nobody-has-made-it');
    await call(info, 35, () => {}).catch((error) => console.log(`error=${error.message}`));
    await session.destroySession(session);
    process.exit(0);
})().catch((error) => {
    console.error(error);
    process.exit(1);
});
