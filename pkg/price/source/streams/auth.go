package streams

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"perpkeeper/pkg/setting/secret"
)

// credentials sign requests to Data Streams, as docs.chain.link/data-streams/reference/data-streams-api/authentication
// describes. The service refuses times that are more than 5 s from its own.
type credentials struct {
	key, secret secret.String
}

// sign adds the three headers to a request without a body.
func (c credentials) sign(header http.Header, method, requestURI string, now time.Time) {
	ms := now.UnixMilli()
	header.Set("Authorization", c.key.Reveal())
	header.Set("X-Authorization-Timestamp", strconv.FormatInt(ms, 10))
	header.Set("X-Authorization-Signature-Sha256", c.signature(method, requestURI, nil, ms))
}

// signature is the HMAC-SHA256 of "METHOD path?query sha256(body) key ms", in hexadecimal.
func (c credentials) signature(method, requestURI string, body []byte, ms int64) string {
	digest := sha256.Sum256(body)
	mac := hmac.New(sha256.New, []byte(c.secret.Reveal()))
	// a hash takes everything
	_, _ = fmt.Fprintf(mac, "%s %s %s %s %d", method, requestURI, hex.EncodeToString(digest[:]), c.key.Reveal(), ms)
	return hex.EncodeToString(mac.Sum(nil))
}
