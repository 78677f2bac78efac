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
	tag := ""
	if len(reports) > 0 {
		tag = fmt.Sprintf(`"%d"`, reports[0].TimestampMS)
		w.Header().Set("ETag", tag)
	}
	if tag != "" && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	data, err := json.Marshal(reports)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // The client may have gone; nothing is lost with it.
}

// serveStream sends each tick after the one the client names, or the newest one and what follows, until the client
// leaves.
func (f *Feed) serveStream(w http.ResponseWriter, r *http.Request) {
	newest, _ := f.Latest()
	last := newest[0].TimestampMS - 1
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		var err error
		if last, err = strconv.ParseUint(text, 10, 62); err != nil {
			http.Error(w, fmt.Sprintf("Last-Event-ID: %q is no time in milliseconds", text), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	for {
		ticks, changed := f.Since(last)
		for _, reports := range ticks {
			last = reports[0].TimestampMS
			if err := writeEvent(w, reports); err != nil {
				return
			}
		}
		if out.Flush() != nil {
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
	_, err = fmt.Fprintf(w, "id: %d\ndata: %s\n\n", reports[0].TimestampMS, data)
	return err
}
