package store

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket keeps files as objects of a bucket by the S3 API, under a prefix.
type bucket struct {
	client *minio.Client
	place
}

func openBucket(at place, c Config) (*bucket, error) {
	keys := credentials.NewStaticV4(c.AccessKey.Reveal(), c.SecretKey.Reveal(), "")
	if !c.AccessKey.IsSet() {
		keys = credentials.NewIAM("") // the machine's own role, where there is one
	}
	client, err := minio.New(at.host, &minio.Options{
		Creds: keys, Secure: !at.plain, Region: c.Region, BucketLookup: minio.BucketLookupAuto,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the S3 client of %s: %w", at.host, err)
	}
	return &bucket{client: client, place: at}, nil
}

// partBytes is how much of an object is held in memory while it is sent: its length is not known before its end. 10000
// such parts are the most an object can have, 160 GB.
const partBytes = 16 << 20

// Put implements [snapshot.Store]: what is larger than one part is uploaded in several, and the object appears when all
// of them are there.
func (b *bucket) Put(ctx context.Context, name string, content io.Reader) error {
	_, err := b.client.PutObject(ctx, b.bucket, b.prefix+name, content, -1,
		minio.PutObjectOptions{PartSize: partBytes, NumThreads: 1})
	return b.explain("writing", name, err)
}

// Open implements [snapshot.Source].
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.bucket, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, b.explain("opening", name, err)
	}
	// Only now is the server asked.
	if _, err := object.Stat(); err != nil {
		_ = object.Close()
		return nil, b.explain("opening", name, err)
	}
	return object, nil
}

// List implements [snapshot.Source].
func (b *bucket) List(ctx context.Context) (names []string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for object := range b.client.ListObjects(ctx, b.bucket,
		minio.ListObjectsOptions{Prefix: b.prefix, Recursive: true}) {
		if object.Err != nil {
			return nil, b.explain("listing", "", object.Err)
		}
		names = append(names, strings.TrimPrefix(object.Key, b.prefix))
	}
	return names, nil
}

// Delete implements [snapshot.Store].
func (b *bucket) Delete(ctx context.Context, name string) error {
	return b.explain("removing", name,
		b.client.RemoveObject(ctx, b.bucket, b.prefix+name, minio.RemoveObjectOptions{}))
}

// explain reports of which object an error is, and makes "no such object" the error everybody knows.
func (b *bucket) explain(doing, name string, err error) error {
	if err == nil {
		return nil
	}
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		err = fs.ErrNotExist
	}
	return fmt.Errorf("%s %s/%s%s at %s: %w", doing, b.bucket, b.prefix, name, b.host, err)
}
