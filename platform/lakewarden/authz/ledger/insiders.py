"""Who is in a project: those with a grant or a membership in it. For the queries of other apps."""

from typing import Final

IS_INSIDER: Final = """
    (exists (select from authz_grant g where g.principal_id = u.id and g.project_id = %(project)s)
     or exists (select from authz_membership m where m.member_id = u.id and m.project_id = %(project)s))
"""
"""Whether the principal with the id `u.id` is in the project `project`."""
