// A browser starts no worker for a page that was opened as a file. The site's search runs in a hidden frame instead,
// so that it works from a directory. Mkdocs' offline plugin loads such a script from the network; this one is local.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = new Promise((resolve, reject) => {
        const script = frame.contentDocument.createElement("script")
        script.src = url
        script.onload = resolve
        script.onerror = reject
        frame.contentDocument.body.appendChild(script)
      })
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
  window.Worker = window.IFrameWorker
}
