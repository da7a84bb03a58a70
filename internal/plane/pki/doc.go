// Package pki makes and renews the plane's own certificates and keys. All of it lives in one
// directory, every file readable by its owner only.
//
// Two authorities are kept apart, so that a serving certificate can never log in and a client
// certificate can never serve: server-ca signs what the plane serves with, client-ca signs
// those who may ask. An authority is renewed with its key kept, so certificates and copies of
// the old authority stay valid until the date written in them; everything else gets a new key.
// Whatever has passed two thirds of its life is renewed.
package pki
