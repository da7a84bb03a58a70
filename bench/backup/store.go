package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// The store is filled beside the API, since that would take longer than all that is measured.
const (
	prefix    = "/bench/"
	valueSize = 64 << 10
	perWrite  = 1 << 20 / valueSize
)

func (b *bench) withStore(do func(*clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + filepath.Join(b.Data(), "etcd.sock")}})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // only read from
	return do(c)
}

// fillStore writes text that can be compressed to half its size, as Kubernetes' objects can.
func (b *bench) fillStore(ctx context.Context) error {
	random := rand.NewChaCha8([32]byte{1})
	return b.withStore(func(c *clientv3.Client) error {
		for i := range b.size {
			var ops []clientv3.Op
			for j := range perWrite {
				raw := make([]byte, valueSize/2)
				_, _ = random.Read(raw) // never fails
				ops = append(ops, clientv3.OpPut(fmt.Sprintf("%s%d-%d", prefix, i, j), hex.EncodeToString(raw)))
			}
			if _, err := c.Txn(ctx).Then(ops...).Commit(); err != nil {
				return fmt.Errorf("filling the store: %w", err)
			}
		}
		return nil
	})
}

// checkStore counts what was restored.
func (b *bench) checkStore(ctx context.Context) error {
	return b.withStore(func(c *clientv3.Client) error {
		res, err := c.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			return err
		}
		if want := int64(b.size * perWrite); res.Count != want {
			return fmt.Errorf("%d of %d values are there after the restore", res.Count, want)
		}
		return nil
	})
}
