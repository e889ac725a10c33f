//! Verifies an RS256 access token at every request: signature, issuer, audience, expiry.

use std::collections::HashMap;

use jsonwebtoken::errors::Error;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{decode, decode_header, Algorithm, DecodingKey, Validation};
use serde::Deserialize;

#[derive(Deserialize)]
struct Claims {
    sub: String,
}

pub struct Verifier {
    keys: HashMap<Option<String>, DecodingKey>,
    validation: Validation,
}

impl Verifier {
    /// `jwks` is the issuer's JSON Web Key Set (RFC 7517).
    pub fn new(jwks: &str, issuer: &str, audience: &str) -> Self {
        let set: JwkSet =
            serde_json::from_str(jwks).expect("YARDSTICK_JWKS is not a JSON Web Key Set");
        let keys = set.keys.iter().map(|key| {
            (
                key.common.key_id.clone(),
                DecodingKey::from_jwk(key).expect("a key of the set cannot be used"),
            )
        });
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        Self {
            keys: keys.collect(),
            validation,
        }
    }

    /// The subject.
    pub fn verify(&self, token: &str) -> Result<String, Error> {
        let header = decode_header(token)?;
        let key = self
            .keys
            .get(&header.kid)
            .ok_or(jsonwebtoken::errors::ErrorKind::InvalidKeyFormat)?;
        Ok(decode::<Claims>(token, key, &self.validation)?.claims.sub)
    }
}
