// The search runs in a worker, which a page that is opened as a file may not start. There the worker's script runs in a hidden
// frame of the page. Without this file, by its name, the plugin `offline` takes one from the network.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      this.inside = new Promise((ready) => frame.addEventListener("load", () => ready(frame.contentWindow)));
      this.inside.then((inside) => (inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))));
      document.body.append(frame);
    }
    async postMessage(data) {
      (await this.inside).dispatchEvent(new MessageEvent("message", { data }));
    }
  };
