// Posts requests to a queue manager with a public client:
//   node post.js axios|undici URL DIRECTORY
// Each request is N.headers (one `Name: value` to a line) and N.body in the directory; the target is
// the first line of the headers. Prints the status of each answer. One connection is kept.
import { readFileSync, readdirSync } from "node:fs";
import http from "node:http";

const [client, base, directory] = process.argv.slice(2);

const posts = {
  async axios() {
    const { default: axios } = await import("axios");
    const httpAgent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    return async (target, headers, body) => {
      const answer = await axios.post(base + target, body, {
        headers, httpAgent, proxy: false, maxRedirects: 0, validateStatus: () => true,
      });
      return answer.status;
    };
  },
  async undici() {
    const { Pool } = await import("undici");
    const pool = new Pool(base, { connections: 1 });
    return async (path, headers, body) => {
      const answer = await pool.request({ path, method: "POST", headers, body });
      await answer.body.dump();
      return answer.statusCode;
    };
  },
};

const post = await posts[client]();
const names = readdirSync(directory).filter((name) => name.endsWith(".headers")).sort();
for (const name of names) {
  const [target, ...lines] = readFileSync(`${directory}/${name}`, "utf8").trim().split("\n");
  const headers = Object.fromEntries(lines.map((line) => line.split(/: (.*)/s).slice(0, 2)));
  const body = readFileSync(`${directory}/${name.replace(".headers", ".body")}`);
  console.log(await post(target, headers, body));
}
process.exit(0);
