# METADATA
# title: Questions to Lakewarden
# description: |
#   What cannot be asked is undefined, so that a rule that needs it does not hold: a failure never allows anything.
#   Answers about rights are not kept: a right that is taken away is felt by the next query.
package lakewarden.client

import data.lakewarden.settings

# The server answers no more checks in one request.
_at_once := 1000

# The UUID of a catalog's warehouse.
warehouse_id(catalog) := answer.body.overrides.prefix if {
	answer := _request({
		"method": "GET",
		"url": concat("", [
			settings.url, "/catalog/v1/config?warehouse=",
			urlquery.encode(settings.catalogs[catalog]),
		]),
		# the id of a warehouse changes only when another one takes its name
		"force_cache": true,
		"force_cache_duration_seconds": 30,
	})
}

# Whether each of the operations is allowed for the user, in the order of the operations.
allowed(user, operations) := results if {
	starts := numbers.range_step(0, max([count(operations) - 1, 0]), _at_once)
	answers := [_checked(user, array.slice(operations, start, start + _at_once)) | some start in starts]
	results := [each | some answer in answers; some each in answer]

	# an answer that is missing would move all others to a wrong place
	count(results) == count(operations)
}

_checked(user, operations) := [result.allowed | some result in answer.body.results] if {
	identity := {"identity": {"user": concat("", [settings.user_prefix, user])}}
	answer := _batch_check([object.union(identity, {"operation": each}) | some each in operations])
}

# Whether each of the operations is allowed for this client itself.
allowed_here(operations) := [result.allowed | some result in answer.body.results] if {
	answer := _batch_check([{"operation": each} | some each in operations])
}

_batch_check(checks) := _request({
	"method": "POST",
	"url": concat("", [settings.url, "/management/v1/action/batch-check"]),
	"body": {"checks": checks},
})

_request(request) := answer if {
	answer := http.send(object.union(request, {
		"headers": {"authorization": concat(" ", ["Bearer", _token])},
		"timeout": settings.timeout,
		"raise_error": false,
	}))
	answer.status_code == 200
}

_token := answer.body.access_token if {
	answer := http.send({
		"method": "POST",
		"url": settings.token_endpoint,
		"headers": {"content-type": "application/x-www-form-urlencoded"},
		"raw_body": urlquery.encode_object({
			"grant_type": "client_credentials",
			"client_id": settings.client.id,
			"client_secret": settings.client.secret,
			"scope": settings.scope,
		}),
		"timeout": settings.timeout,
		"raise_error": false,
		"force_cache": true,
		"force_cache_duration_seconds": settings.token_lifetime_s,
	})
	answer.status_code == 200
}
