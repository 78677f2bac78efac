package pricefeed

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

func (f *Feed) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/reports", f.serveReports)
	mux.HandleFunc("GET /v1/stream", f.serveStream)
	return mux
}

func (f *Feed) serveReports(w http.ResponseWriter, r *http.Request) {
	reports, _ := f.Latest()
	if at := r.URL.Query().Get("at"); at != "" {
		second, err := strconv.ParseUint(at, 10, 40)
		if err != nil {
			http.Error(w, fmt.Sprintf("at: %q is no Unix second", at), http.StatusBadRequest)
			return
		}
		if reports, err = f.At(second); err != nil {
			http.Error(w, err.Error(), http.StatusGone)
			return
		}
	}
	data, err := json.Marshal(reports)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // The client may have gone; nothing is lost with it.
}

// serveStream sends the newest reports at once and then at every tick, until the client leaves.
func (f *Feed) serveStream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	for {
		reports, changed := f.Latest()
		if err := writeEvent(w, reports); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func writeEvent(w http.ResponseWriter, reports []Report) error {
	data, err := json.Marshal(reports)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", data)
	return err
}
