// The search takes some characters for operators, and words between double quotes for words that
// must all be there. An error text that is pasted is none of this: it is looked up word by word,
// and of a whole error body its message.
document.addEventListener("paste", event => {
  const field = event.target
  if (!field.matches("[data-md-component=search-query]")) return
  event.preventDefault()
  const pasted = event.clipboardData.getData("text")
  const message = pasted.match(/["']message["']:\s*(["'])(.*?)\1\s*[,}]/s)
  const words = (message ? message[2] : pasted).replace(/["^~*+:$\s]+/g, " ").trim()
  field.setRangeText(words, field.selectionStart, field.selectionEnd, "end")
  field.dispatchEvent(new Event("keyup", { bubbles: true })) // what the theme searches on
})
