package bus

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go/compress"
)

const (
	// zstdBatch is the batch attribute of records that are compressed by zstd.
	zstdBatch = uint16(compress.Zstd)
	// leastCompressed is the size of records in bytes below which nothing is compressed: the record of an empty block
	// is mostly hashes, and would not get smaller.
	leastCompressed = 256
	// window is how far back the compression looks, in bytes. Logs repeat what stands a few records before.
	window = 1 << 20
	// maxUnpacked is the most that one batch may unpack to, in bytes. No batch of this package is larger, whatever the
	// configuration of the process that wrote it.
	maxUnpacked = maxMaxBytes
	// packing is about how many times smaller the logs of history become. A fetch asks for so much less than
	// Config.MaxBytes, so that what it unpacks to is about that much.
	packing = 32
)

// errUnpacked is the error of a batch that unpacks to more than maxUnpacked.
var errUnpacked = errors.New("a batch unpacks to more than any batch may have")

// compressor makes zstd frames. On logs its default level costs about what the fastest one does, and gives a tenth
// less.
var compressor = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithWindowSize(window),
		zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return e
})

// pack compresses the records of a batch. It returns false where that would not make them smaller.
func pack(records []byte) (packed []byte, smaller bool) {
	if len(records) < leastCompressed {
		return nil, false
	}
	packed = compressor().EncodeAll(records, make([]byte, 0, len(records)/2))
	return packed, len(packed) < len(records)
}

// boundCodecs has the library, which unpacks the batches of a fetch before anybody can look at them, stop at
// maxUnpacked bytes a batch.
var boundCodecs = sync.OnceFunc(func() {
	for i, codec := range compress.Codecs {
		switch compress.Compression(i) {
		case compress.None:
		case compress.Zstd:
			compress.Codecs[i] = boundZstd{codec}
		default:
			compress.Codecs[i] = boundCodec{codec}
		}
	}
})

// boundCodec is a codec whose readers stop.
type boundCodec struct{ compress.Codec }

func (c boundCodec) NewReader(r io.Reader) io.ReadCloser {
	return &boundReader{ReadCloser: c.Codec.NewReader(r), left: maxUnpacked}
}

// boundReader fails when more than left bytes are read from it.
type boundReader struct {
	io.ReadCloser

	left int
}

func (r *boundReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if r.left -= n; r.left < 0 {
		return 0, fmt.Errorf("%w (%d bytes)", errUnpacked, maxUnpacked)
	}
	return n, err
}

// boundZstd also bounds what the library would set aside for a frame that only claims to be large.
type boundZstd struct{ compress.Codec }

func (boundZstd) NewReader(r io.Reader) io.ReadCloser {
	d, err := decompressor(r)
	if err != nil {
		return io.NopCloser(failing{err})
	}
	return &boundReader{ReadCloser: pooled{d}, left: maxUnpacked}
}

var decompressors sync.Pool

func decompressor(r io.Reader) (*zstd.Decoder, error) {
	if d, is := decompressors.Get().(*zstd.Decoder); is {
		return d, d.Reset(r)
	}
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxUnpacked))
}

// pooled gives its decoder back when it is closed.
type pooled struct{ *zstd.Decoder }

func (p pooled) Close() error {
	err := p.Reset(nil) // lets go of what it read from
	decompressors.Put(p.Decoder)
	return err
}

// failing is a reader that could not be opened.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
