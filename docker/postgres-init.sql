-- databases of other programs than Lakewarden; PostgreSQL's image runs this when it makes a new volume
CREATE ROLE openfga LOGIN PASSWORD 'openfga';
CREATE DATABASE openfga OWNER openfga;
CREATE ROLE keycloak LOGIN PASSWORD 'keycloak';
CREATE DATABASE keycloak OWNER keycloak;
