// Package notify informs people of what a keeper has done: the owners of positions, through whoever runs the venue's
// front end, and the keeper's own operators (LIQ-12).
//
// A [Message] goes to every [Receiver] of its audience. How it gets there is a plug-in, one folder below this one each.
// Package receivers is the section of the configuration and the list of plug-ins.
//
// # Guaranteed
//
//   - Delivered means: the receiver said that it has the message.
//   - A receiver that does not answer is tried again for as long as the caller's context lasts. One that refuses a
//     message is tried a bounded number of times; then the message is the caller's again, with a [RefusedError].
//   - No credential is in an error, and of a URL no more than its host: tokens stand in paths.
//
// # Not guaranteed
//
// That a message arrives once, or in order beyond what the caller makes of it.
package notify
