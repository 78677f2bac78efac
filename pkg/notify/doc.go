// Package notify posts messages about what a keeper has done to webhooks: for the owners of positions, through whoever
// runs the venue's front end, and the keeper's own operators (LIQ-12).
//
// A [Message] is posted as JSON. Its id is the same however often it is posted. The header [SignatureHeader] carries
// the time of the posting and an HMAC-SHA256 over that time and the body, so that a receiver can tell ours from forged
// and from replayed ones:
//
//	Perpkeeper-Signature: t=<Unix seconds>,v1=<hex of HMAC-SHA256(secret, "<Unix seconds>.<body>")>
//
// # Guaranteed
//
//   - Delivered means: the receiver answered with a status of 200 to 299.
//   - A receiver that does not answer is asked again for as long as the caller's context lasts. One that answers with a
//     refusal is asked a bounded number of times; then the message is the caller's again, with a [RefusedError].
//   - Neither URLs nor the secret are in errors; redirects are not followed, because a signed message is meant for one
//     receiver.
//
// # Not guaranteed
//
// That a message arrives once, or in order beyond what the caller makes of it.
package notify
