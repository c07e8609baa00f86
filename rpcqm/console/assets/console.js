"use strict";
// Pages work without this. With it, regions that are marked with data-live are replaced after a
// change, by what the same page shows then: at most once a second, and not while somebody is in them.
// Where ages are shown (data-ages), which grow by themselves, that is done every ten seconds too.
// A form that goes on with long work (data-goes-on) is sent by itself.
(function () {
  const going = document.querySelector("form[data-goes-on]");
  if (going) {
    going.requestSubmit();
    return;
  }
  const address = document.body.dataset.events;
  if (!address || !document.querySelector("[data-live]")) return;
  const GONE = [403, 404];
  const SCROLLED = ".scroll, pre";
  let source = null;
  let busy = false;
  let again = false;

  // Whether somebody has marked text in a region, has written or chosen something there, or has the
  // focus on a link or a field that might become another one.
  function isUsed(region, focus) {
    const marked = getSelection();
    const fields = [...region.querySelectorAll("input, textarea")];
    return (
      (marked.type === "Range" && marked.containsNode(region, true)) ||
      fields.some((each) => each.value !== each.defaultValue || each.checked !== each.defaultChecked) ||
      (focus && !focus.matches(".scroll, pre, summary"))
    );
  }

  // Puts an element in the place of another one: what was open stays so, and as far scrolled.
  function put(now, old) {
    const fresh = now.querySelectorAll("details");
    old.querySelectorAll("details").forEach((each, at) => {
      if (fresh[at]) fresh[at].open = each.open;
    });
    if (now.isEqualNode(old)) return;
    const places = [...old.querySelectorAll(SCROLLED)].map((each) => [each.scrollLeft, each.scrollTop]);
    old.replaceWith(now);
    now.querySelectorAll(SCROLLED).forEach((each, at) => each.scrollTo(...(places[at] || [0, 0])));
  }

  // The same, but for the element that has the focus and those around it, which stay.
  function putAround(focus, now, old) {
    if (!focus || !old.contains(focus)) {
      put(now, old);
    } else if (old === focus) {
      old.replaceChildren(...now.childNodes);
    } else {
      const [before, after] = [[...old.children], [...now.children]];
      if (before.map((each) => each.tagName).join() !== after.map((each) => each.tagName).join()) return;
      before.forEach((each, at) => putAround(focus, after[at], each));
    }
  }

  function replace(fresh) {
    for (const old of document.querySelectorAll("[data-live]")) {
      const name = CSS.escape(old.dataset.live);
      const now = fresh.querySelector(`[data-live="${name}"]`);
      const focus = old.contains(document.activeElement) ? document.activeElement : null;
      if (now && !isUsed(old, focus)) putAround(focus, document.adoptNode(now), old);
    }
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    again = false;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.redirected || GONE.includes(answer.status)) {
        location.reload();
        return;
      }
      if (answer.ok) {
        const text = await answer.text();
        replace(new DOMParser().parseFromString(text, "text/html"));
      }
    } catch (error) {
      // The queue manager is away; the events tell when it is back.
    }
    setTimeout(function () {
      busy = false;
      if (again) refresh();
    }, 1000);
  }

  function listen() {
    if (source || document.hidden) return;
    source = new EventSource(address);
    source.addEventListener("changed", refresh);
    source.addEventListener("error", function () {
      if (source && source.readyState === EventSource.CLOSED) refresh();
    });
  }

  document.addEventListener("visibilitychange", function () {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden) {
      listen();
      refresh();
    }
  });
  listen();
  if (document.querySelector("[data-ages]")) {
    setInterval(function () {
      if (!document.hidden) refresh();
    }, 10000);
  }
})();
